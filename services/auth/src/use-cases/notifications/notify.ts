import type { JsonObject } from '../../domain/json.ts';
import type { User } from '../../domain/user.ts';
import type { DepsWith } from '../../services.ts';
import type { NotificationKind } from '../../settings/mail-text-settings.ts';

/**
 * Tells a user by mail what has changed, if the settings want such mails and the user has an email. Nobody waits for it. It is in no
 * quota: whoever takes over an account must not be able to use that up first.
 *
 * `to` is another address than the user's: the old one, when the email has changed.
 */
export type Notify = (
  user: Pick<User, 'email'>,
  kind: NotificationKind,
  variables?: JsonObject,
  to?: string,
) => void;

/** What that takes. */
export type NotifyDeps = DepsWith<
  'mailer' | 'background',
  'siteUrl' | `mailNotification:${NotificationKind}`
>;

/** Creates {@link Notify}. */
export function createNotify({ mailer, background, settings }: NotifyDeps): Notify {
  return (user, kind, variables = {}, to = user.email) => {
    if (!settings[`mailNotification:${kind}`] || to === '') return;
    background.run('notification mail', () =>
      mailer.send({
        kind,
        to,
        variables: { SiteURL: settings.siteUrl, Email: user.email, SendingTo: to, ...variables },
      }),
    );
  };
}
