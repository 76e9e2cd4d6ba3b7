import { auditEntry } from '../../domain/audit-entry.ts';
import { contactIdentityData } from '../../domain/identity.ts';
import type { JsonObject } from '../../domain/json.ts';
import { metadataSizeProblem } from '../../domain/metadata-size.ts';
import type { RequestFacts } from '../../domain/request-facts.ts';
import type { User } from '../../domain/user.ts';
import { errors } from '../../errors.ts';
import type { NewUser } from '../../ports/user-store.ts';
import type { Services } from '../../services.ts';
import type { Contact } from '../contact/read-contact.ts';

/** The latest sign-up for a contact. */
export interface LatestSignUp {
  readonly contact: Contact;
  readonly data: JsonObject;
  /** With its password and whether it is confirmed. */
  readonly newUser: Pick<NewUser, 'passwordHash' | 'emailConfirmedAt' | 'phoneConfirmedAt'>;
}

/**
 * Gives a user whom nobody has confirmed the password of the latest sign-up, or none if that had none: an earlier one may be of
 * somebody else, who waits for the owner of the contact to confirm it. Metadata are merged, an administrator may have set some; those
 * that would make them too large are left out, as an error would tell that there is somebody.
 * Answers the user as changed.
 */
export type TakeOver = (user: User, latest: LatestSignUp, facts: RequestFacts) => Promise<User>;

/** Creates {@link TakeOver}: one statement. */
export function createTakeOver({ store }: Pick<Services, 'store'>): TakeOver {
  return async (user, { contact, data: given, newUser }, facts) => {
    const sizes = { before: user.userMetadata, changes: given };
    const data = metadataSizeProblem('user_metadata', sizes) === undefined ? given : {};
    const { passwordHash, emailConfirmedAt, phoneConfirmedAt } = newUser;
    const verified = emailConfirmedAt !== undefined || phoneConfirmedAt !== undefined;
    const value = contact.kind === 'email' ? { email: contact.email } : { phone: contact.phone };
    const identityData = contactIdentityData({ userId: user.id, contact: value, verified, data });
    const updated = await store.users.update(
      user.id,
      {
        passwordHash: passwordHash ?? null,
        userMetadata: verified ? { ...data, [`${contact.kind}_verified`]: true } : data,
        ...(emailConfirmedAt && { emailConfirmedAt }),
        ...(phoneConfirmedAt && { phoneConfirmedAt }),
      },
      {
        at: new Date(facts.nowMs),
        audit: auditEntry(user, verified ? 'user_signedup' : 'user_repeated_signup', { facts }),
        identities: [{ provider: contact.kind, providerId: user.id, data: identityData }],
      },
    );
    if (!updated.ok) throw errors.user_already_exists();
    return updated.user;
  };
}
