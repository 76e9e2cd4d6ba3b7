import { type TSchema, Type } from 'typebox';

// Schemas that many responses of the OpenAPI document have.

export const text = Type.String();
export const texts = Type.Array(text);
export const flag = Type.Boolean();
export const count = Type.Integer();
export const uuid = Type.String({ format: 'uuid' });
export const time = Type.String({ format: 'date-time' });
export const unixTime = Type.Integer({ description: 'Unix time in seconds.' });
/** Members of any name. */
export const object = Type.Record(Type.String(), Type.Unknown());

export function anyObject(description: string) {
  return Type.Record(Type.String(), Type.Unknown(), { description });
}

/** A member that may be absent. */
export function maybe<T extends TSchema>(schema: T) {
  return Type.Optional(schema);
}

/** A member that may be null. */
export function orNull<T extends TSchema>(schema: T) {
  return Type.Union([schema, Type.Null()]);
}

/** Members that tell whether a list by cursor goes on. */
export const pageMembers = { next_cursor: maybe(text), has_more: flag };
