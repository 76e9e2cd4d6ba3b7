import type { CodeChallenge } from '../../domain/pkce.ts';
import type { RequestFacts } from '../../domain/request-facts.ts';
import { errors } from '../../errors.ts';
import type { DepsWith } from '../../services.ts';
import { readEmail } from '../contact/read-contact.ts';
import { createSendToContact, type SendToContactDeps } from '../sending/send-to-contact.ts';

/** Who has lost their password. */
export interface RecoverInput {
  readonly email?: string | undefined;
  /** Asks that the link in the mail answers a code. */
  readonly challenge: CodeChallenge | undefined;
  readonly redirectTo: string;
  readonly aud: string;
}

/** Mails a link that signs in, so that a new password can be set. Nobody is told whether there is such a user. */
export type Recover = (input: RecoverInput, facts: RequestFacts) => Promise<void>;

/** Creates {@link Recover}. */
export function createRecover(deps: SendToContactDeps & DepsWith<'store', never>): Recover {
  const sendToContact = createSendToContact(deps);
  return async ({ email: text = '', challenge, redirectTo, aud }, facts) => {
    if (text === '') throw errors.validation_failed({ message: 'Password recovery requires an email' });
    const email = readEmail(text);
    const user = await deps.store.users.findByEmail(email, aud);
    await sendToContact(
      { contact: { kind: 'email', email }, purpose: 'sign_in', instead: 'recovery', challenge, redirectTo },
      user && { user, kind: 'recovery' },
      facts,
    );
  };
}
