import type { AccountContext } from '../account/context.ts';
import type { ApiKeysContext } from '../api-keys/context.ts';
import type { BrowserSessionsContext } from '../browser-sessions/issue.ts';
import type { MfaContext } from '../mfa/context.ts';
import type { AuthorizationContext } from '../oauth/authorize.ts';
import type { DomainsContext } from '../organizations/domains.ts';
import type { InvitationsContext } from '../organizations/invitations.ts';
import type { PasskeysContext } from '../passkeys/context.ts';
import type { SignInContext } from '../sign-in/password.ts';

export type PagesContext = SignInContext &
  AccountContext &
  MfaContext &
  InvitationsContext &
  DomainsContext &
  PasskeysContext &
  ApiKeysContext &
  BrowserSessionsContext &
  AuthorizationContext;
