import type { AccountTexts } from './en.ts';

export const account: AccountTexts = {
  security: 'Connexion et sécurité',
  applications: 'Applications connectées',
  applicationsText: 'Vous avez donné à ces applications accès à votre compte.',
  noApplications: 'Aucune application n’a accès à votre compte.',
  accessTo: (resource) => `Pour ${resource}`,
  accessSince: 'accès depuis :',
  revokeAccess: 'Retirer l’accès',
  signedInAt: 'connexion :',

  addPhone: 'Ajouter un numéro de téléphone',
  changePhone: 'Changer de numéro de téléphone',
  phoneCodeTitle: 'Confirmez votre numéro de téléphone',
  phoneCodeText: (phone) => `Nous avons envoyé un code au ${phone}. Veuillez le saisir.`,

  passkeys: 'Clés d’accès',
  passkeysText:
    'Avec une clé d’accès, vous vous connectez par empreinte, par visage ou par le verrouillage de l’écran.',
  passkey: 'Clé d’accès',
  passkeyAdded: 'ajoutée :',
  addPasskey: 'Ajouter une clé d’accès',
  addPasskeyText:
    'Le navigateur demande où garder la clé d’accès : sur cet appareil, sur un téléphone ou sur une clé de sécurité.',
  passkeyNotCreated: 'Aucune clé d’accès n’a été créée. Veuillez réessayer.',
  passkeyNotFound: 'Cette clé d’accès a été supprimée.',
  rename: 'Renommer',
  renamePasskey: 'Renommer la clé d’accès',
  removePasskey: 'Supprimer la clé d’accès',
  removePasskeyText: (name) => `Vous ne pourrez plus vous connecter avec ${name}.`,

  yourData: 'Vos données',
  downloadData: 'Télécharger vos données',
  downloadText:
    'Vous recevez un fichier JSON avec ce qui est enregistré sur vous : profil, moyens de connexion, sessions, applications, organisations, clés d’API et vos actions. Il ne contient aucun secret.',
  confirmDeletion: 'Je comprends que cela ne peut pas être annulé.',

  saved: {
    application: 'L’application n’a plus accès.',
    phone: 'Votre numéro de téléphone est enregistré.',
    passkey: 'La clé d’accès est ajoutée.',
    'passkey-renamed': 'Le nom est enregistré.',
    'passkey-removed': 'La clé d’accès est supprimée.',
  },

  errors: {
    oauth_consent_not_found: 'Cette application n’a plus accès.',
    webauthn_credential_exists: 'Cette clé d’accès est déjà ajoutée.',
    too_many_passkeys: 'Vous avez le nombre maximal de clés d’accès. Veuillez d’abord en supprimer une.',
  },
};
