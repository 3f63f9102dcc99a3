/** Who wants to know of changes; the views redraw from the model, so that a change carries nothing. */

export class Listeners {
  private readonly all = new Set<() => void>();

  /** Call `listener` at every change, until the function that is returned is called. */
  add(listener: () => void): () => void {
    this.all.add(listener);
    return () => this.all.delete(listener);
  }

  /** Tell all that something has changed. */
  tell(): void {
    for (const listener of [...this.all]) {
      listener();
    }
  }
}
