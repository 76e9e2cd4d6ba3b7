import { forUser, type Operations } from './operation.ts';

export const passkeysOperations: Operations = {
  'POST /passkeys/authentication/options': {
    id: 'startPasskeySignIn',
    summary: 'Create a challenge for a sign-in with a passkey',
    response: 'PasskeyChallenge',
    captcha: true,
  },
  'POST /passkeys/authentication/verify': {
    id: 'finishPasskeySignIn',
    summary: 'Sign in with a passkey',
    response: 'Session',
    example: ['challenge_id', 'credential'],
  },
  'POST /passkeys/registration/options': {
    id: 'startPasskeyRegistration',
    ...forUser,
    summary: 'Create a challenge for a new passkey',
    response: 'PasskeyChallenge',
  },
  'POST /passkeys/registration/verify': {
    id: 'finishPasskeyRegistration',
    ...forUser,
    summary: 'Register a passkey',
    response: 'Passkey',
    example: ['challenge_id', 'credential'],
  },
  'GET /passkeys': {
    id: 'listPasskeys',
    ...forUser,
    summary: 'List the passkeys of the user',
    response: ['Passkey'],
  },
  'PATCH /passkeys/{passkey_id}': {
    id: 'renamePasskey',
    ...forUser,
    summary: 'Rename a passkey',
    response: 'Passkey',
  },
  'DELETE /passkeys/{passkey_id}': {
    id: 'removePasskey',
    ...forUser,
    summary: 'Remove a passkey',
    status: 204,
  },
};
