import { pkcePrefix } from '../../domain/pkce.ts';
import type { RequestFacts } from '../../domain/request-facts.ts';
import type { User } from '../../domain/user.ts';
import { errors } from '../../errors.ts';
import type { Store } from '../../ports/store.ts';
import type { DepsWith } from '../../services.ts';
import type { NotificationKind } from '../../settings/mail-text-settings.ts';
import { createNotify } from '../notifications/notify.ts';
import { type CheckPasswordDeps, checkPassword } from '../passwords/check-password.ts';
import { createStartSession, type IssuedSession, type StartSessionDeps } from '../sessions/start-session.ts';
import { type CompleteVerificationDeps, createCompleteVerification } from './complete-verification.ts';
import { createFindToken, type FindTokenDeps, type FoundToken, type Presented } from './find-token.ts';
import { type VerificationType, verifications } from './verification.ts';

/** What is presented, and a password for a user who has none. */
export interface VerifyInput extends Presented {
  readonly password?: string | undefined;
}

/** A session, a code to exchange for one, or a change of email that the other address has yet to confirm. */
export type Verified =
  | { readonly kind: 'session'; readonly session: IssuedSession; readonly type: string }
  | { readonly kind: 'code'; readonly code: string }
  | { readonly kind: 'other-address-to-confirm' };

/**
 * Takes a code or link that was sent to somebody, does what it was sent for, and signs them in. `link` is how it is followed in a
 * browser: there the link of a PKCE flow answers a code.
 *
 * @throws AppError `validation_failed`, `otp_expired`, `user_banned`, `weak_password`, `email_exists`, `phone_exists`,
 * `over_request_rate_limit`, `flow_state_not_found`.
 */
export type Verify = (input: VerifyInput, by: 'request' | 'link', facts: RequestFacts) => Promise<Verified>;

/** What that takes. */
export type VerifyDeps = StartSessionDeps &
  FindTokenDeps &
  CompleteVerificationDeps &
  CheckPasswordDeps &
  DepsWith<
    'store' | 'random' | 'passwords' | 'mailer' | 'background',
    'siteUrl' | `mailNotification:${NotificationKind}`
  >;

/** Creates {@link Verify}. */
export function createVerify(deps: VerifyDeps): Verify {
  const { store, random, passwords } = deps;
  const findToken = createFindToken(deps);
  const complete = createCompleteVerification(deps);
  const notify = createNotify(deps);

  /** Before the token is spent: a password that is too weak can be chosen again. */
  async function hashFirstPassword({ type, user }: FoundToken, password = ''): Promise<string | undefined> {
    const mayChoose = (type === 'signup' || type === 'invite') && user.passwordHash === undefined;
    if (password === '' || !mayChoose) return undefined;
    await checkPassword(password, deps);
    return passwords.hash(password);
  }

  async function issueCode(
    within: Store,
    { type, token, user }: FoundToken,
    facts: RequestFacts,
  ): Promise<string> {
    const code = random.uuid();
    const authenticationMethod = verifications[type].flowMethod(token.type);
    const flow = { userId: user.id, authenticationMethod, code };
    if (!(await within.flows.issueCode(flow, new Date(facts.nowMs))))
      throw errors.flow_state_not_found({ message: 'No valid flow state found for user.' });
    return code;
  }

  function tellOfChange(type: VerificationType, before: User, after: User): void {
    if (type === 'email_change')
      notify(after, 'EMAIL_CHANGED_NOTIFICATION', { OldEmail: before.email }, before.email);
    if (type === 'phone_change')
      notify(after, 'PHONE_CHANGED_NOTIFICATION', { Phone: after.phone, OldPhone: before.phone });
  }

  async function signIn(
    within: Store,
    { found, user }: { readonly found: FoundToken; readonly user: User },
    by: 'request' | 'link',
    facts: RequestFacts,
  ): Promise<Verified> {
    if (by === 'link' && found.token.keptAs.startsWith(pkcePrefix))
      return { kind: 'code', code: await issueCode(within, found, facts) };
    const startSession = createStartSession({ ...deps, store: within });
    const traits = { provider: verifications[found.type].contact };
    const session = await startSession(user, { method: 'otp', traits }, facts);
    return { kind: 'session', session, type: typeOf(found) };
  }

  return async ({ password, ...presented }, by, facts) => {
    const found = await findToken(presented, facts);
    const passwordHash = await hashFirstPassword(found, password);
    // All or nothing: a token that is spent has signed somebody in.
    const { completed, verified } = await store.transaction(async (within) => {
      const completed = await complete(within, found, { passwordHash, facts });
      if (completed.kind !== 'user') return { completed, verified: completed };
      return { completed, verified: await signIn(within, { found, user: completed.user }, by, facts) };
    });
    if (completed.kind === 'user') tellOfChange(found.type, found.user, completed.user);
    return verified;
  };
}

/** What the client did: `email` stands for either of two. */
function typeOf({ type, token }: FoundToken): string {
  if (type !== 'email') return type;
  return token.type === 'confirmation_token' ? 'signup' : 'magiclink';
}
