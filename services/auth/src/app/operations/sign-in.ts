import type { Operations } from './operation.ts';

export const signInOperations: Operations = {
  'POST /signup': {
    id: 'signUp',
    summary: 'Sign up by email or phone; with neither, as an anonymous user',
    response: { oneOf: ['Session', 'User'] },
    captcha: true,
    example: ['email', 'password', 'data'],
  },
  'POST /token': {
    id: 'createToken',
    summary: 'Get tokens by password, refresh token or PKCE code. Forms get the response of RFC 6749',
    response: 'Session',
    captcha: true,
    example: ['email', 'password'],
  },
  'POST /otp': {
    id: 'sendOneTimePassword',
    summary: 'Send a sign-in link or code',
    response: 'SentMessage',
    captcha: true,
    example: ['email', 'create_user'],
  },
  'POST /magiclink': {
    id: 'sendMagicLink',
    summary: 'Send a sign-in link. Prefer /otp',
    response: 'Empty',
    captcha: true,
  },
  'POST /recover': {
    id: 'recoverPassword',
    summary: 'Send a password reset link',
    response: 'Empty',
    captcha: true,
  },
  'POST /resend': {
    id: 'resendMessage',
    summary: 'Send a link or a code again',
    response: 'SentMessage',
    captcha: true,
    example: ['type', 'email'],
  },
  'GET /verify': { id: 'followLink', summary: 'Follow a link: signs in and redirects', status: 303 },
  'POST /verify': {
    id: 'verifyOneTimePassword',
    summary: 'Verify a code or the token of a link',
    response: { oneOf: ['Session', 'AcceptedLink'] },
    example: ['type', 'token', 'email'],
  },
  'GET /authorize': {
    id: 'authorizeWithProvider',
    summary: 'Sign in with an identity provider: redirects to it',
    status: 302,
  },
  'GET /callback': {
    id: 'receiveProviderResponse',
    summary: 'Response of an identity provider: signs in and redirects',
    status: 302,
  },
  'POST /callback': {
    id: 'receiveProviderForm',
    summary: 'Response of an identity provider as a form: signs in and redirects',
    status: 302,
  },
};
