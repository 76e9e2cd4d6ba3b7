import type { AccountTexts } from './en.ts';

export const account: AccountTexts = {
  security: 'Anmeldung und Sicherheit',
  applications: 'Verbundene Anwendungen',
  applicationsText: 'Diesen Anwendungen haben Sie Zugriff auf Ihr Konto gegeben.',
  noApplications: 'Keine Anwendung hat Zugriff auf Ihr Konto.',
  accessTo: (resource) => `Für ${resource}`,
  accessSince: 'Zugriff seit',
  revokeAccess: 'Zugriff entziehen',
  signedInAt: 'angemeldet',

  addPhone: 'Telefonnummer hinzufügen',
  changePhone: 'Telefonnummer ändern',
  phoneCodeTitle: 'Telefonnummer bestätigen',
  phoneCodeText: (phone) => `Wir haben einen Code an ${phone} gesendet. Bitte geben Sie ihn ein.`,

  passkeys: 'Passkeys',
  passkeysText: 'Mit einem Passkey melden Sie sich per Fingerabdruck, Gesicht oder Bildschirmsperre an.',
  passkey: 'Passkey',
  passkeyAdded: 'hinzugefügt',
  addPasskey: 'Passkey hinzufügen',
  addPasskeyText:
    'Ihr Browser fragt, wo der Passkey gespeichert wird: auf diesem Gerät, auf einem Telefon oder auf einem Sicherheitsschlüssel.',
  passkeyNotCreated: 'Es wurde kein Passkey erstellt. Bitte versuchen Sie es noch einmal.',
  passkeyNotFound: 'Dieser Passkey ist entfernt.',
  rename: 'Umbenennen',
  renamePasskey: 'Passkey umbenennen',
  removePasskey: 'Passkey entfernen',
  removePasskeyText: (name) => `Sie können sich dann nicht mehr mit ${name} anmelden.`,

  yourData: 'Ihre Daten',
  downloadData: 'Ihre Daten herunterladen',
  downloadText:
    'Sie erhalten eine JSON-Datei mit dem, was über Sie gespeichert ist: Profil, Anmeldearten, Sitzungen, Anwendungen, Organisationen, API-Schlüssel und Ihre Aktionen. Sie enthält keine Geheimnisse.',
  confirmDeletion: 'Ich weiß, dass das nicht rückgängig gemacht werden kann.',

  saved: {
    application: 'Die Anwendung hat keinen Zugriff mehr.',
    phone: 'Ihre Telefonnummer ist gespeichert.',
    passkey: 'Der Passkey ist hinzugefügt.',
    'passkey-renamed': 'Der Name ist gespeichert.',
    'passkey-removed': 'Der Passkey ist entfernt.',
  },

  errors: {
    oauth_consent_not_found: 'Diese Anwendung hat keinen Zugriff mehr.',
    webauthn_credential_exists: 'Dieser Passkey ist schon hinzugefügt.',
    too_many_passkeys: 'Sie haben die größtmögliche Zahl von Passkeys. Bitte entfernen Sie zuerst einen.',
  },
};
