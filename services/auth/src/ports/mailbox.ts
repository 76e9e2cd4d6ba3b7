import type { MailMessage } from './mailer.ts';

/** A mail that development mode shows. */
export interface MailboxEntry extends MailMessage {
  readonly id: number;
  readonly at: Date;
}

/** The mails of development mode, newest first. */
export interface Mailbox {
  list(): readonly MailboxEntry[];
  clear(): void;
}
