/** Any JSON value. */
export type JsonValue = string | number | boolean | null | readonly JsonValue[] | JsonObject;

/** A JSON object. Those of responses have no prototype: `__proto__` and `constructor` are keys as any other. */
export type JsonObject = { readonly [key: string]: JsonValue };
