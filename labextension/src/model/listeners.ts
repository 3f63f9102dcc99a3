/** Who wants to know of changes; views that redraw from the model want nothing with it. */

export class Listeners<T> {
  private readonly all = new Set<(what: T) => void>();

  /** Call `listener` at every change, until the function that is returned is called. */
  add(listener: (what: T) => void): () => void {
    this.all.add(listener);
    return () => this.all.delete(listener);
  }

  /** Tell all. */
  tell(what: T): void {
    for (const listener of [...this.all]) {
      listener(what);
    }
  }
}
