import type { Json, JsonObject } from '@tollgate/kit/json';

/** Audit entries are kept, and metadata may have a thousand members. */
const maxFields = 50;
const maxNameChars = 64;
/** A longer value, such as a document in the metadata, is left out. */
const maxValueChars = 200;
/** All values of an entry together. */
const maxTotalChars = 4_096;

/** Names of fields whose values are never recorded: applications keep credentials in metadata. */
const secretName =
  /secret|token|password|passwd|passphrase|passcode|credential|private|api[_-]?key|cookie|(?:^|[._-])(?:pass|pwd|pin|otp|auth|dsn|key)$/i;
const secretKeyName = /[a-z]Key$/;

const isSecretName = (name: string): boolean => secretName.test(name) || secretKeyName.test(name);

/** A URL with a password, such as that of a database. */
const urlWithPassword = /:\/\/[^\s/@]*:[^\s/@]*@/;
/** Metadata may be nested as deeply as a request is; deeper objects are one value. */
const maxDepth = 8;

/** A field before and after a change. */
interface FieldChange {
  /** The name in the API. */
  readonly name: string;
  readonly before: unknown;
  readonly after: unknown;
}

/**
 * Traits of an audit entry: the names of the fields that differ, and their values before and after.
 * Members of an object are fields of their own. Values of secrets, and values that are too long,
 * are left out.
 */
export function describeChanges(fields: readonly FieldChange[]): {
  readonly changed: readonly string[];
  readonly changes: JsonObject;
} {
  const changed: string[] = [];
  const changes: Record<string, JsonObject> = {};
  let left = maxTotalChars;
  for (const { name: path, before, after } of findDifferences(fields)) {
    if (changed.length === maxFields) break;
    const name = path.slice(0, maxNameChars);
    changed.push(name);
    const chars = Math.max(JSON.stringify(before).length, JSON.stringify(after).length);
    if (chars > maxValueChars || 2 * chars > left) continue;
    if (isSecretName(path) || hasSecret(before) || hasSecret(after)) continue;
    left -= 2 * chars;
    changes[name] = { old: before, new: after };
  }
  return { changed, changes };
}

interface Difference {
  readonly name: string;
  readonly before: Json;
  readonly after: Json;
}

function* findDifferences(fields: readonly FieldChange[]): Generator<Difference> {
  for (const { name, before, after } of fields)
    yield* compare({ name, before: toJson(before), after: toJson(after) }, 1);
}

/** Members that an object does not have are null. */
function* compare({ name, before, after }: Difference, depth: number): Generator<Difference> {
  if (JSON.stringify(before) === JSON.stringify(after)) return;
  const [old, now] = [before ?? {}, after ?? {}];
  const isSplit = isObject(old) && isObject(now) && depth <= maxDepth;
  const names = isSplit ? Object.keys({ ...old, ...now }) : [];
  if (names.length === 0) yield { name, before, after };
  for (const member of names)
    yield* compare(
      { name: `${name}.${member}`, before: getMember(old, member), after: getMember(now, member) },
      depth + 1,
    );
}

function getMember(value: Json, name: string): Json {
  return isObject(value) && Object.hasOwn(value, name) ? toJson(value[name]) : null;
}

function isObject(value: Json): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Whether the value contains a password, or a member with the name of a secret. It is short. */
function hasSecret(value: Json): boolean {
  if (typeof value === 'string') return urlWithPassword.test(value);
  if (typeof value !== 'object' || value === null) return false;
  return Object.entries(value).some(([name, member]) => isSecretName(name) || hasSecret(member));
}

/** Absent, null and the empty text are the same. */
function toJson(value: unknown): Json {
  if (value === undefined || value === '') return null;
  // Parsed boundary: a column or a value of a request, which JSON can represent.
  return JSON.parse(JSON.stringify(value)) as Json;
}
