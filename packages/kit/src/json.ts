/** A JSON value. */
export type Json = string | number | boolean | null | readonly Json[] | JsonObject;

/** A JSON object; `__proto__` and `constructor` are own, ordinary keys of it. */
export interface JsonObject {
  readonly [key: string]: Json;
}
