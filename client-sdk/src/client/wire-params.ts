/** A value of a wire parameter. Null and undefined are not sent; numbers and booleans are sent as text. */
export type WireValue =
  | string
  | number
  | boolean
  | null
  | undefined
  | readonly WireValue[]
  | { readonly [key: string]: WireValue };

/** Parameters under their names on the wire (snake_case), for a query, a form or a JSON body. */
export type WireParams = { readonly [name: string]: WireValue };
