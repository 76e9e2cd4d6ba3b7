import { isUuid } from '@tollgate/kit/text';
import { type Static, Type } from 'typebox';
import type { KeyOwner } from '../api-keys/api-key.ts';
import { asJsonObject, type KeyInput } from '../api-keys/input.ts';
import { errors } from '../errors.ts';
import { body, optionalFlag, optionalObject, optionalText } from '../http/api.ts';

const texts = Type.Optional(Type.Array(Type.String()));

const keyMembers = {
  name: optionalText,
  scopes: texts,
  admin_scopes: texts,
  role: optionalText,
  plan: optionalText,
  limit: optionalObject,
  expires_at: optionalText,
  allowed_networks: texts,
  metadata: optionalObject,
  disabled: optionalFlag,
};
const owner = Type.Optional(Type.Object({ user_id: optionalText, org_id: optionalText }));

export const changeKeyBody = body(keyMembers);
export const createKeyBody = body({ ...keyMembers, owner });

/** A line of an import. */
export const importedKey = Type.Object(
  {
    ...keyMembers,
    owner,
    digest: Type.String({ pattern: '^[0-9a-fA-F]{64}$' }),
    prefix: Type.Optional(Type.String({ maxLength: 32 })),
    last4: Type.Optional(Type.String({ maxLength: 4 })),
  },
  { additionalProperties: false },
);

/** @throws AppError `validation_failed` */
export function readOwner({
  user_id: userId = '',
  org_id: orgId = '',
}: {
  readonly user_id?: string;
  readonly org_id?: string;
} = {}): KeyOwner {
  requireUuids({ 'owner.user_id': userId, 'owner.org_id': orgId });
  if (userId !== '' && orgId !== '')
    throw errors.validation_failed({ message: 'owner must have user_id or org_id, not both' });
  if (userId !== '') return { userId: userId.toLowerCase() };
  return orgId === '' ? {} : { orgId: orgId.toLowerCase() };
}

/** Empty texts are absent. @throws AppError `validation_failed` */
export function requireUuids(ids: Readonly<Record<string, string>>): void {
  for (const [name, id] of Object.entries(ids))
    if (id !== '' && !isUuid(id)) throw errors.validation_failed({ message: `${name} must be a UUID` });
}

export function toKeyInput({ limit, metadata, ...others }: Static<typeof changeKeyBody>): KeyInput {
  return { ...others, limit: asJsonObject(limit), metadata: asJsonObject(metadata) };
}
