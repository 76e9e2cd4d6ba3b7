import type { Texts } from './texts.ts';

const ignore = 'Si vous n’êtes pas à l’origine de cette demande, vous pouvez ignorer cet e-mail.';

export const fr: Texts = {
  openLink: 'Si le bouton ne fonctionne pas, ouvrez ce lien\u00a0:',
  enterCode: 'Ou saisissez ce code\u00a0:',
  report:
    'Si vous n’êtes pas à l’origine de cette modification, contactez immédiatement l’assistance de {{ .SiteURL }}.',
  linkPage: { title: 'Continuer', text: 'Cliquez sur le bouton pour continuer.', button: 'Continuer' },
  returnToDevice:
    'Vous reviendrez à une application de cet appareil. Continuez uniquement si vous avez lancé vous-même la connexion.',
  mails: {
    INVITE: {
      subject: 'Vous avez reçu une invitation',
      title: 'Vous avez reçu une invitation',
      text: 'Vous êtes invité(e) à créer un compte sur {{ .SiteURL }}.',
      button: 'Accepter l’invitation',
      note: 'Si vous n’attendiez pas cette invitation, vous pouvez ignorer cet e-mail.',
    },
    ORGANIZATION_INVITE: {
      subject: 'Invitation à rejoindre {{ .OrganizationName }}',
      title: 'Rejoindre {{ .OrganizationName }}',
      text: "{{ .InvitedBy }} vous invite à rejoindre {{ .OrganizationName }} sur {{ .SiteURL }} avec l'adresse {{ .Email }}.",
      button: "Ouvrir l'invitation",
      note: "Si vous n'attendiez pas cette invitation, vous pouvez ignorer cet e-mail.",
    },
    CONFIRMATION: {
      subject: 'Confirmez votre inscription',
      title: 'Confirmez votre adresse e-mail',
      text: 'Une inscription sur {{ .SiteURL }} a été effectuée avec l’adresse {{ .Email }}.',
      button: 'Confirmer l’adresse e-mail',
      note: 'Si vous n’êtes pas à l’origine de cette inscription, vous pouvez ignorer cet e-mail.',
    },
    RECOVERY: {
      subject: 'Réinitialisez votre mot de passe',
      title: 'Réinitialisez votre mot de passe',
      text: 'Nous avons reçu une demande de réinitialisation du mot de passe de {{ .Email }} sur {{ .SiteURL }}.',
      button: 'Réinitialiser le mot de passe',
      note: `${ignore} Votre mot de passe ne sera pas modifié.`,
    },
    MAGIC_LINK: {
      subject: 'Votre lien de connexion',
      title: 'Connexion',
      text: 'Utilisez ce lien pour vous connecter à {{ .SiteURL }}. Il ne peut être utilisé qu’une seule fois.',
      button: 'Se connecter',
      note: `${ignore} Ne communiquez ni le lien ni le code à personne.`,
    },
    EMAIL_CHANGE: {
      subject: 'Confirmez le changement d’adresse e-mail',
      title: 'Confirmez votre nouvelle adresse e-mail',
      text: 'Nous avons reçu une demande de changement de l’adresse e-mail de votre compte sur {{ .SiteURL }}{{ if .Email }}, actuellement {{ .Email }}{{ end }}. La nouvelle adresse serait {{ .NewEmail }}.',
      button: 'Confirmer le changement',
      note: ignore,
    },
    REAUTHENTICATION: {
      subject: 'Confirmez votre identité',
      title: 'Confirmez votre identité',
      text: 'Saisissez ce code pour continuer\u00a0:',
      note: `${ignore} Ne communiquez le code à personne.`,
    },
    PASSWORD_CHANGED_NOTIFICATION: {
      subject: 'Votre mot de passe a été modifié',
      title: 'Votre mot de passe a été modifié',
      text: 'Le mot de passe de {{ .Email }} a été modifié.',
    },
    EMAIL_CHANGED_NOTIFICATION: {
      subject: 'Votre adresse e-mail a été modifiée',
      title: 'Votre adresse e-mail a été modifiée',
      text: 'L’adresse e-mail de votre compte a été modifiée\u00a0: {{ .OldEmail }} a été remplacée par {{ .Email }}.',
    },
    PHONE_CHANGED_NOTIFICATION: {
      subject: 'Votre numéro de téléphone a été modifié',
      title: 'Votre numéro de téléphone a été modifié',
      text: 'Le numéro de téléphone de {{ .Email }} a été modifié{{ if .OldPhone }}\u00a0: {{ .OldPhone }} a été remplacé par {{ .Phone }}{{ else }}\u00a0: {{ .Phone }}{{ end }}.',
    },
    IDENTITY_LINKED_NOTIFICATION: {
      subject: 'Une méthode de connexion a été ajoutée',
      title: 'Une méthode de connexion a été ajoutée',
      text: 'Vous pouvez désormais vous connecter au compte de {{ .Email }} avec {{ .Provider }}.',
    },
    IDENTITY_UNLINKED_NOTIFICATION: {
      subject: 'Une méthode de connexion a été supprimée',
      title: 'Une méthode de connexion a été supprimée',
      text: 'Vous ne pouvez plus vous connecter au compte de {{ .Email }} avec {{ .Provider }}.',
    },
    MFA_FACTOR_ENROLLED_NOTIFICATION: {
      subject: 'Un second facteur a été ajouté',
      title: 'Un second facteur a été ajouté',
      text: 'Un second facteur ({{ .FactorType }}) a été ajouté au compte de {{ .Email }}.',
    },
    MFA_FACTOR_UNENROLLED_NOTIFICATION: {
      subject: 'Un second facteur a été supprimé',
      title: 'Un second facteur a été supprimé',
      text: 'Un second facteur ({{ .FactorType }}) a été supprimé du compte de {{ .Email }}.',
    },
    MFA_FACTORS_LOCKED_NOTIFICATION: {
      subject: 'Votre second facteur a été mal saisi trop souvent',
      title: 'Second facteur bloqué',
      text: 'Quelqu’un s’est connecté au compte de {{ .Email }} avec le mot de passe, mais a saisi trop de codes erronés du second facteur. Les codes ne sont désormais acceptés que depuis les réseaux où vous en avez déjà utilisé un. Si ce n’était pas vous, changez votre mot de passe.',
    },
  },
};
