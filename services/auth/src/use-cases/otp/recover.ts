import type { CodeChallenge } from '../../domain/pkce.ts';
import type { RequestFacts } from '../../domain/request-facts.ts';
import { errors } from '../../errors.ts';
import type { DepsWith } from '../../services.ts';
import { readEmail } from '../contact/read-contact.ts';
import { createTakeTurn } from '../sending/contact-spacing.ts';
import { takeMailQuota } from '../sending/mail-quota.ts';
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

/**
 * Creates {@link Recover}. With `SVC_SECURITY_UNIFORM_ANSWERS` the user is looked up after the answer, so that how long it takes does
 * not tell whether there is one.
 */
export function createRecover(deps: SendToContactDeps & DepsWith<'store', never>): Recover {
  const { store, background, settings } = deps;
  const sendToContact = createSendToContact(deps);
  const takeTurn = createTakeTurn(deps);

  return async ({ email: text = '', challenge, redirectTo, aud }, facts) => {
    if (text === '') throw errors.validation_failed({ message: 'Password recovery requires an email' });
    const email = readEmail(text);
    const contact = { kind: 'email', email } as const;
    const purpose = 'sign_in';

    async function send(afterAnswer: boolean): Promise<void> {
      const user = await store.users.findByEmail(email, aud);
      await sendToContact(
        { contact, purpose, instead: 'recovery', challenge, redirectTo, afterAnswer },
        user && { user, kind: 'recovery' },
        facts,
      );
    }

    if (!settings.uniformAnswers) return send(false);
    await takeTurn(contact, purpose, facts);
    await takeMailQuota(deps, facts.nowMs);
    background.run('recovery', () => send(true));
  };
}
