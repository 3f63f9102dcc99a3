/** Values of the server's JSON, checked as they come in: an answer of another version is told, not half understood. */

export class WireError extends Error {}

export type Fields = Record<string, unknown>;

/** Return `value` as an object. Throws WireError that names `what`. */
export function fields(value: unknown, what: string): Fields {
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new WireError(`${what} is not an object`);
  }
  return value as Fields;
}

/** Return `value` as a list whose items `item` has decoded. */
export function list<T>(value: unknown, what: string, item: (value: unknown) => T): T[] {
  if (!Array.isArray(value)) {
    throw new WireError(`${what} is not a list`);
  }
  return value.map(item);
}

/** Return a text; empty where the server leaves it out. */
export function text(of: Fields, name: string): string {
  const value = of[name] ?? '';
  if (typeof value !== 'string') {
    throw new WireError(`${name} is not a text`);
  }
  return value;
}

/** Return a number, or null where it is unknown. */
export function number(of: Fields, name: string): number | null {
  const value = of[name] ?? null;
  if (value !== null && typeof value !== 'number') {
    throw new WireError(`${name} is not a number`);
  }
  return value;
}

/** Return a list of texts; empty where the server leaves it out. */
export function texts(of: Fields, name: string): string[] {
  return list(of[name] ?? [], name, String);
}

/** Return an object of texts; empty where the server leaves it out. */
export function textsByName(of: Fields, name: string): Record<string, string> {
  const found = fields(of[name] ?? {}, name);
  return Object.fromEntries(Object.entries(found).map(([key, value]) => [key, String(value)]));
}
