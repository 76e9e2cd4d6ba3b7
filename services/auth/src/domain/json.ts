/** A value that JSON can hold. */
export type Json = string | number | boolean | null | readonly Json[] | JsonObject;

/** An object of JSON, such as the metadata of a user. */
export interface JsonObject {
  readonly [key: string]: Json;
}
