import type { AccountTexts } from './en.ts';

export const account: AccountTexts = {
  security: 'Acceso y seguridad',
  applications: 'Aplicaciones conectadas',
  applicationsText: 'Has dado acceso a tu cuenta a estas aplicaciones.',
  noApplications: 'Ninguna aplicación tiene acceso a tu cuenta.',
  accessTo: (resource) => `Para ${resource}`,
  accessSince: 'acceso desde:',
  revokeAccess: 'Retirar el acceso',
  signedInAt: 'inicio de sesión:',

  addPhone: 'Añadir un número de teléfono',
  changePhone: 'Cambiar el número de teléfono',
  phoneCodeTitle: 'Confirma tu número de teléfono',
  phoneCodeText: (phone) => `Hemos enviado un código a ${phone}. Introdúcelo.`,

  passkeys: 'Claves de acceso',
  passkeysText: 'Con una clave de acceso inicias sesión con tu huella, tu cara o el bloqueo de pantalla.',
  passkey: 'Clave de acceso',
  passkeyAdded: 'añadida:',
  addPasskey: 'Añadir una clave de acceso',
  addPasskeyText:
    'El navegador pregunta dónde guardar la clave de acceso: en este dispositivo, en un teléfono o en una llave de seguridad.',
  passkeyNotCreated: 'No se ha creado ninguna clave de acceso. Inténtalo de nuevo.',
  passkeyNotFound: 'Esta clave de acceso ya no existe.',
  rename: 'Cambiar nombre',
  renamePasskey: 'Cambiar el nombre',
  removePasskey: 'Eliminar la clave de acceso',
  removePasskeyText: (name) => `Ya no podrás iniciar sesión con ${name}.`,

  yourData: 'Tus datos',
  downloadData: 'Descargar tus datos',
  downloadText:
    'Recibes un archivo JSON con lo que está guardado sobre ti: perfil, formas de iniciar sesión, sesiones, aplicaciones, organizaciones, claves de API y tus acciones. No contiene secretos.',
  confirmDeletion: 'Entiendo que esto no se puede deshacer.',

  saved: {
    application: 'La aplicación ya no tiene acceso.',
    phone: 'Tu número de teléfono está guardado.',
    passkey: 'La clave de acceso está añadida.',
    'passkey-renamed': 'El nombre está guardado.',
    'passkey-removed': 'La clave de acceso está eliminada.',
  },

  errors: {
    oauth_consent_not_found: 'Esta aplicación ya no tiene acceso.',
    webauthn_credential_exists: 'Esta clave de acceso ya está añadida.',
    too_many_passkeys: 'Tienes el máximo de claves de acceso. Elimina una primero.',
  },
};
