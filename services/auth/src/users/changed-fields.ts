import type { JsonObject } from '@tollgate/kit/json';
import { describeChanges } from '../audit/changes.ts';
import type { User, UserChanges } from './user.ts';

/** Traits of the audit entry of a change: the changed fields, as the API names them. */
export function describeUserChanges(user: User, changes: UserChanges): ReturnType<typeof describeChanges> {
  const { passwordHash, appMetadata = {}, userMetadata = {}, ...columns } = changes;
  const before: Readonly<Record<string, unknown>> = { ...user };
  return describeChanges([
    ...Object.entries(columns).map(([name, after]) => ({
      name: toSnakeCase(name),
      before: before[name],
      after,
    })),
    // The hash of the same password differs, too.
    ...(passwordHash === undefined ? [] : [{ name: 'password', before: false, after: true }]),
    ...toMembers('app_metadata', user.appMetadata, appMetadata),
    ...toMembers('user_metadata', user.userMetadata, userMetadata),
  ]);
}

function toMembers(name: string, before: JsonObject, changes: JsonObject) {
  return Object.entries(changes).map(([key, after]) => ({
    name: `${name}.${key}`,
    before: before[key],
    after,
  }));
}

function toSnakeCase(name: string): string {
  return name.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
}
