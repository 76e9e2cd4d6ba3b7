import type { Context } from '../context.ts';
import { auditEntry } from '../db/audit-log.ts';
import { errors, RetryLaterError } from '../errors.ts';
import type { RequestMetadata } from '../http/request-metadata.ts';
import type { User } from '../users/user.ts';
import type { OneTimeToken } from '../verification/store.ts';
import { type LinkRequest, type LinkToken, linkOf, linkTraits, newLinkToken } from './links.ts';
import type { OutgoingMail } from './mailer.ts';
import { secondsUntilNext, spacingMessage, takeMailQuota } from './quotas.ts';

/**
 * Mails a link and a code to a user, which take the place of the last ones of their kind. A change of email goes to both addresses
 * where the settings want both to confirm.
 *
 * @throws AppError `over_email_send_rate_limit` when the user has just had one, or too many mails are sent; `unexpected_failure` when
 * the mail cannot be handed over: the user then may ask again at once.
 */
export type SendLink = (user: User, link: LinkRequest, metadata: RequestMetadata) => Promise<void>;

/** A code, where it is mailed to, and what is kept of it. */
interface AddressedToken extends LinkToken {
  readonly to: string;
}

/** Creates {@link SendLink}: one statement for the quota, one for the tokens. */
export function createSendLink(deps: Context): SendLink {
  const { store, mailer, background, settings } = deps;

  function newTokens(user: User, link: LinkRequest, at: Date): [AddressedToken, ...AddressedToken[]] {
    const of = { userId: user.id, flow: link.flow, at };
    const { token: type } = linkTraits[link.kind];
    if (link.kind !== 'email_change')
      return [{ ...newLinkToken(deps, { ...of, type, contact: user.email }), to: user.email }];
    const to = link.newEmail ?? user.newEmail;
    const toNew = { ...newLinkToken(deps, { ...of, type, contact: to }), to };
    if (!needsBothAddresses(user)) return [toNew];
    const current = { ...of, type: 'email_change_token_current', contact: user.email } as const;
    return [toNew, { ...newLinkToken(deps, current), to: user.email }];
  }

  function needsBothAddresses({ email }: User): boolean {
    return settings.mailerSecureEmailChangeEnabled && !settings.mailerAutoconfirm && email !== '';
  }

  function mailOf(user: User, link: LinkRequest, { code, token, to }: AddressedToken): OutgoingMail {
    const traits = linkTraits[link.kind];
    return {
      kind: traits.mail,
      to,
      variables: {
        SiteURL: settings.siteUrl,
        Email: user.email,
        NewEmail: link.newEmail ?? user.newEmail,
        SendingTo: to,
        Token: code,
        Data: link.data ?? user.userMetadata,
        RedirectTo: link.redirectTo,
        ...(link.kind !== 'reauthentication' && {
          TokenHash: token.hash,
          ConfirmationURL: linkOf(settings, traits, { hash: token.hash, redirectTo: link.redirectTo }),
        }),
      },
    };
  }

  return async (user, link, metadata) => {
    const traits = linkTraits[link.kind];
    const at = new Date(metadata.nowMs);
    const spacingMs = settings.smtpMaxFrequencyMs ?? traits.spacingMs;
    const notSince = traits.sentAt && new Date(metadata.nowMs - spacingMs);
    const waitSeconds = secondsUntilNext(traits.sentAt?.(user), spacingMs, metadata.nowMs);
    if (waitSeconds > 0) throw tooSoon(waitSeconds);
    if (!link.quotaTaken) await takeMailQuota(deps, metadata.nowMs);

    const addressed = newTokens(user, link, at);
    const [first, ...rest] = addressed;
    const tokens: [OneTimeToken, ...OneTimeToken[]] = [first.token, ...rest.map(({ token }) => token)];
    const audit = auditEntry(link.actor ?? user, traits.action, {
      metadata,
      ...(link.actor && { traits: { user_id: user.id, user_email: user.email } }),
    });
    // Of requests that come together one gets through.
    if (!(await store.oneTimeTokens.replace(tokens, audit, { notSince })))
      throw tooSoon(Math.ceil(spacingMs / 1000));

    const deliver = async (): Promise<void> => {
      try {
        for (const token of addressed) await mailer.send(mailOf(user, link, token));
      } catch (error) {
        await store.oneTimeTokens.withdraw(tokens);
        throw error;
      }
    };
    // How long a mail server takes, and whether it refuses, tells that there is somebody to write to.
    if (settings.uniformAnswers) return background.run(`${traits.name} mail`, deliver);
    try {
      await deliver();
    } catch (error) {
      throw errors.unexpected_failure({ message: `Error sending ${traits.name} email`, cause: error });
    }
  };
}

function tooSoon(seconds: number): RetryLaterError {
  const message = spacingMessage(seconds);
  return new RetryLaterError(errors.over_email_send_rate_limit({ message }), seconds);
}
