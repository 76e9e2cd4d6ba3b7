/**
 * A value of a parameter. Null and undefined are not sent, but in JSON, which has null; within an array or object a query or form
 * cannot say them, which is an error. Numbers and booleans are sent as text.
 */
export type WireValue =
  | string
  | number
  | boolean
  | null
  | undefined
  | readonly WireValue[]
  | { readonly [key: string]: WireValue };

/**
 * Parameters under their names on the wire (snake_case), for a query, a form or a JSON body. To the authorization server an array of
 * scopes goes joined, and objects (`claims`, `authorization_details`) as JSON.
 */
export type WireParams = { readonly [name: string]: WireValue };
