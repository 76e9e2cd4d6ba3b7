import type { JsonObject } from '../../domain/json.ts';
import { type MetadataKind, metadataSizeProblem } from '../../domain/metadata-size.ts';
import type { User } from '../../domain/user.ts';
import { errors } from '../../errors.ts';

/** What is to be merged into the metadata of a user. */
export interface MetadataChanges {
  readonly userMetadata?: JsonObject | undefined;
  readonly appMetadata?: JsonObject | undefined;
}

/** The metadata of somebody who is new. */
const none: Pick<User, 'userMetadata' | 'appMetadata'> = { userMetadata: {}, appMetadata: {} };

/** Makes sure that metadata do not become larger than access tokens can carry. @throws AppError `validation_failed`. */
export function checkMetadata(
  { userMetadata = {}, appMetadata = {} }: MetadataChanges,
  before: Pick<User, 'userMetadata' | 'appMetadata'> = none,
): void {
  check('user_metadata', { before: before.userMetadata, changes: userMetadata });
  check('app_metadata', { before: before.appMetadata, changes: appMetadata });
}

function check(kind: MetadataKind, of: { readonly before: JsonObject; readonly changes: JsonObject }): void {
  const message = metadataSizeProblem(kind, of);
  if (message !== undefined) throw errors.validation_failed({ message });
}
