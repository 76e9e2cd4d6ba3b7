import type { Json, JsonObject } from '@tollgate/kit/json';

/** Audit entries are kept, and metadata may have a thousand members. */
const maxFields = 50;
const maxNameChars = 64;
/** A longer value, such as a document in the metadata, is left out. */
const maxValueChars = 200;
/** All values of an entry together. */
const maxTotalChars = 4_096;

/** Names of fields whose values are never recorded: applications keep credentials in metadata. */
const secretName = /secret|token|password|credential|private|api_?key/i;

/** A field before and after a change. */
interface FieldChange {
  /** The name in the API. */
  readonly name: string;
  readonly before: unknown;
  readonly after: unknown;
}

/**
 * Traits of an audit entry: the names of the fields that differ, and their values before and after.
 * Values of secrets, and values that are too long, are left out.
 */
export function describeChanges(fields: readonly FieldChange[]): {
  readonly changed: readonly string[];
  readonly changes: JsonObject;
} {
  const differing = fields
    .map(({ name, before, after }) => ({
      name: name.slice(0, maxNameChars),
      before: toJson(before),
      after: toJson(after),
    }))
    .filter(({ before, after }) => JSON.stringify(before) !== JSON.stringify(after))
    .slice(0, maxFields);
  const changes: Record<string, JsonObject> = {};
  let left = maxTotalChars;
  for (const { name, before, after } of differing) {
    const chars = Math.max(JSON.stringify(before).length, JSON.stringify(after).length);
    if (secretName.test(name) || chars > maxValueChars || 2 * chars > left) continue;
    left -= 2 * chars;
    changes[name] = { old: before, new: after };
  }
  return { changed: differing.map(({ name }) => name), changes };
}

/** Absent, null and the empty text are the same. */
function toJson(value: unknown): Json {
  if (value === undefined || value === '') return null;
  // Parsed boundary: a column or a value of a request, which JSON can represent.
  return JSON.parse(JSON.stringify(value)) as Json;
}
