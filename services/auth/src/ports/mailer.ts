import type { JsonObject } from '../domain/json.ts';
import type { MailKind } from '../settings/mail-text-settings.ts';

/** A mail to be sent; what it says comes from the template of its kind. */
export interface OutgoingMail {
  readonly kind: MailKind;
  readonly to: string;
  /** What `{{ .Name }}` stands for, by that name: `SiteURL`, `Email`, `Token`, `ConfirmationURL`, … */
  readonly variables: JsonObject;
}

/** Sends mail. */
export interface Mailer {
  /** Resolves when the mail has been handed over. Rejects when that fails or takes too long. */
  send(mail: OutgoingMail): Promise<void>;
}
