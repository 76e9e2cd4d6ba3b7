import type { MessagesContext } from '../messages/context.ts';
import type { PasswordsContext } from '../passwords/passwords.ts';

export type VerificationContext = MessagesContext & PasswordsContext;
