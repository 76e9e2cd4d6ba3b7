import type { JsonObject } from '@tollgate/kit/json';
import type { User, UserChanges } from './user.ts';

/** Audit entries are kept, and metadata may have a thousand members. */
const maxFields = 50;
const maxNameChars = 64;

/** Names of the fields that differ from those of the user, as the API names them. No values. */
export function changedFields(user: User, changes: UserChanges): string[] {
  const { passwordHash, appMetadata = {}, userMetadata = {}, ...columns } = changes;
  const before: Readonly<Record<string, unknown>> = { ...user };
  const names = [
    ...Object.entries(columns).flatMap(([name, value]) =>
      comparable(before[name]) === comparable(value) ? [] : [toSnakeCase(name)],
    ),
    ...(passwordHash === undefined ? [] : ['password']),
    ...changedMembers('app_metadata', user.appMetadata, appMetadata),
    ...changedMembers('user_metadata', user.userMetadata, userMetadata),
  ];
  return names.slice(0, maxFields);
}

function changedMembers(name: string, before: JsonObject, changes: JsonObject): string[] {
  return Object.entries(changes).flatMap(([key, value]) =>
    comparable(before[key]) === comparable(value) ? [] : [`${name}.${key.slice(0, maxNameChars)}`],
  );
}

/** Absent, null and the empty text are the same. */
function comparable(value: unknown): string {
  return value === undefined || value === null || value === '' ? '' : JSON.stringify(value);
}

function toSnakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
