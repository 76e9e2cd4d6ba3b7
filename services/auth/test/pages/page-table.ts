import { builtInTexts } from '../../src/i18n/texts/texts.ts';
import type { PageTexts } from '../../src/pages/texts/en.ts';
import type { TextKey } from '../../src/pages/texts/texts.ts';
import { accountTable } from './account-table.ts';
import type { PageState } from './page-state.ts';

/** A page in one of its states, which `appearance.test.ts` opens in Chromium. */
export interface PageRow {
  /** Path and query after `/pages/`, or of another route if it starts with a slash. */
  readonly path: string | ((state: PageState) => string);
  /** Default: a guest, who is not signed in. */
  readonly visitor?: 'user' | 'halfway';
  readonly title: TextKey | ((texts: PageTexts, language: string) => string);
  /** Sends a form of the page: the row is about the response. */
  readonly submit?: { readonly target: string; readonly fields?: Readonly<Record<string, string>> };
  /** Whether it says what is wrong. */
  readonly hasProblem?: boolean;
}

/** Every page is in at least one row. */
export const pageTable: readonly PageRow[] = [
  { path: 'sign-in', title: 'signIn' },
  { path: 'sign-in?error_code=bad_oauth_state', title: 'signIn', hasProblem: true },
  {
    path: 'sign-in',
    title: 'signIn',
    submit: { target: 'sign-in', fields: { identifier: 'eve@pages.example', password: 'wrong' } },
    hasProblem: true,
  },
  { path: 'sign-in?other=true', visitor: 'user', title: 'signIn' },
  { path: 'accounts', visitor: 'user', title: 'chooseAccount' },
  { path: 'code', title: 'signInWithCode' },
  {
    path: 'code',
    title: 'signInWithCode',
    submit: { target: 'code', fields: { identifier: 'eve@pages.example' } },
  },
  { path: 'passkey', title: 'signInWithPasskey' },
  { path: 'passkey', title: 'signInWithPasskey', submit: { target: 'passkey' } },
  { path: 'sign-up', title: 'createAccount' },
  {
    path: 'sign-up',
    title: 'createAccount',
    submit: { target: 'sign-up', fields: { email: 'eve@pages.example', password: 'short' } },
    hasProblem: true,
  },
  { path: 'sign-up?sent=true', title: 'checkEmail' },
  { path: 'resend', title: 'sendAgain' },
  { path: 'recovery', title: 'forgotPassword' },
  { path: 'recovery?sent=true', title: 'checkEmail' },
  { path: 'password?error_code=otp_expired', title: 'brokenLink', hasProblem: true },
  { path: 'device', title: 'deviceTitle' },
  {
    path: 'device',
    title: 'deviceTitle',
    submit: { target: 'device', fields: { user_code: 'BBBB-BBBB' } },
    hasProblem: true,
  },
  { path: 'device-done', title: 'deviceDone' },
  { path: 'device-done?error=access_denied', title: 'deviceDenied' },
  { path: 'logout', title: 'signedOutTitle' },
  { path: 'invitation', title: 'invitation' },
  { path: 'provider?provider=unknown', title: 'doesNotWork' },
  {
    path: '/verify?type=signup&token=abc',
    title: (_texts, language) => builtInTexts[language]?.mails.CONFIRMATION.title ?? '',
  },

  { path: 'second-factor', visitor: 'halfway', title: 'twoStep' },
  {
    path: 'second-factor',
    visitor: 'halfway',
    title: 'twoStep',
    submit: { target: 'second-factor', fields: { code: '0' } },
    hasProblem: true,
  },

  ...accountTable,
  { path: 'password', visitor: 'user', title: 'setNewPassword' },
  { path: 'factor?type=totp', visitor: 'user', title: 'setUpApp' },
  { path: 'factor?type=phone', visitor: 'user', title: 'setUpMessages' },
  { path: 'factor', visitor: 'user', title: 'setUpApp', submit: { target: 'factor' } },
  { path: 'factor-remove', visitor: 'user', title: 'removeFactor' },
  { path: 'recovery-codes', visitor: 'user', title: 'createRecoveryCodes' },
  { path: 'confirm', visitor: 'user', title: 'confirmTitle' },
  { path: 'confirm?sent=true', visitor: 'user', title: 'confirmTitle' },
  { path: 'logout', visitor: 'user', title: 'logoutTitle' },
  { path: 'return', visitor: 'user', title: 'returnTitle' },
  { path: ({ consent }) => consent, visitor: 'user', title: 'consentTitle' },
  { path: ({ deviceConsent }) => deviceConsent, visitor: 'user', title: 'consentTitle' },
  { path: ({ linking }) => linking, title: ({ connect }) => connect('GitHub') },
  { path: 'api-key', visitor: 'user', title: 'createApiKey' },
  {
    path: 'api-key',
    visitor: 'user',
    title: 'apiKey',
    submit: { target: 'api-key', fields: { name: 'Laptop' } },
  },
  { path: ({ organization }) => `organization?id=${organization}`, visitor: 'user', title: () => 'Acme' },
  {
    path: ({ organization }) => `api-key?organization=${organization}`,
    visitor: 'user',
    title: 'createApiKey',
  },
  {
    path: ({ invitation }) => `invitation?invitation_token=${invitation}`,
    visitor: 'user',
    title: 'invitation',
  },
  {
    path: 'invitation?invitation_token=abcdefghijklmnopqrstuvwxyz234567',
    visitor: 'user',
    title: 'invitation',
    hasProblem: true,
  },
];
