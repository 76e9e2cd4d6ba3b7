/** Texts of the account area in English, which defines those of the other languages. */
export const account = {
  security: 'Sign-in and security',
  applications: 'Connected applications',
  applicationsText: 'You have given these applications access to your account.',
  noApplications: 'No application has access to your account.',
  accessTo: (resource: string) => `For ${resource}`,
  accessSince: 'access since',
  revokeAccess: 'Revoke access',
  signedInAt: 'signed in',

  addPhone: 'Add a phone number',
  changePhone: 'Change phone number',
  phoneCodeTitle: 'Confirm your phone number',
  phoneCodeText: (phone: string) => `We have sent a code to ${phone}. Please enter it.`,

  passkeys: 'Passkeys',
  passkeysText: 'A passkey signs you in with your fingerprint, your face or the lock of your screen.',
  passkey: 'Passkey',
  passkeyAdded: 'added',
  addPasskey: 'Add a passkey',
  addPasskeyText:
    'Your browser asks where to keep the passkey: on this device, on a phone or on a security key.',
  passkeyNotCreated: 'No passkey was created. Please try again.',
  passkeyNotFound: 'This passkey has been removed.',
  rename: 'Rename',
  renamePasskey: 'Rename passkey',
  removePasskey: 'Remove passkey',
  removePasskeyText: (name: string) => `You will no longer be able to sign in with ${name}.`,

  yourData: 'Your data',
  downloadData: 'Download your data',
  downloadText:
    'You get a JSON file with what is stored about you: your profile, ways to sign in, sessions, applications, organizations, API keys and what you have done. It contains no secrets.',
  confirmDeletion: 'I understand that this cannot be undone.',

  saved: {
    application: 'The application has no access any more.',
    phone: 'Your phone number is saved.',
    passkey: 'The passkey is added.',
    'passkey-renamed': 'The name is saved.',
    'passkey-removed': 'The passkey is removed.',
  },

  errors: {
    oauth_consent_not_found: 'This application has no access any more.',
    webauthn_credential_exists: 'This passkey has been added already.',
    too_many_passkeys: 'You have the maximum number of passkeys. Please remove one first.',
  },
};

export type AccountTexts = typeof account;
