import { type TSchema, Type } from 'typebox';

/** A member that may be absent; `null` is taken for absent before schemas are looked at. */
export const optionalText = Type.Optional(Type.String());

/** Yes or no. */
export const optionalFlag = Type.Optional(Type.Boolean());

/** An object whose members nobody looks at: metadata. */
export const optionalObject = Type.Optional(Type.Record(Type.String(), Type.Unknown()));

/** A body, or none at all: clients leave it out where every member may be absent. */
export function body<T extends Record<string, TSchema>>(members: T) {
  return Type.Object(members);
}
