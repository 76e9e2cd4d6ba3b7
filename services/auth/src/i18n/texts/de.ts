import type { Texts } from './texts.ts';

const ignore = 'Falls Sie das nicht angefordert haben, können Sie diese E-Mail ignorieren.';

export const de: Texts = {
  openLink: 'Falls die Schaltfläche nicht funktioniert, öffnen Sie diesen Link:',
  enterCode: 'Oder geben Sie diesen Code ein:',
  report:
    'Falls Sie diese Änderung nicht vorgenommen haben, wenden Sie sich bitte umgehend an den Support von {{ .SiteURL }}.',
  linkPage: { title: 'Weiter', text: 'Klicken Sie auf die Schaltfläche, um fortzufahren.', button: 'Weiter' },
  returnToDevice:
    'Sie kehren zu einer Anwendung auf diesem Gerät zurück. Fahren Sie nur fort, wenn Sie die Anmeldung selbst begonnen haben.',
  mails: {
    INVITE: {
      subject: 'Sie wurden eingeladen',
      title: 'Sie wurden eingeladen',
      text: 'Sie wurden eingeladen, ein Konto bei {{ .SiteURL }} zu erstellen.',
      button: 'Einladung annehmen',
      note: 'Falls Sie diese Einladung nicht erwartet haben, können Sie diese E-Mail ignorieren.',
    },
    ORGANIZATION_INVITE: {
      subject: 'Einladung zu {{ .OrganizationName }}',
      title: '{{ .OrganizationName }} beitreten',
      text: '{{ .InvitedBy }} hat Sie eingeladen, {{ .OrganizationName }} auf {{ .SiteURL }} mit der Adresse {{ .Email }} beizutreten.',
      button: 'Einladung öffnen',
      note: 'Wenn Sie diese Einladung nicht erwartet haben, können Sie diese E-Mail ignorieren.',
    },
    CONFIRMATION: {
      subject: 'Bestätigen Sie Ihre Registrierung',
      title: 'Bestätigen Sie Ihre E-Mail-Adresse',
      text: 'Sie haben sich bei {{ .SiteURL }} mit der Adresse {{ .Email }} registriert.',
      button: 'E-Mail-Adresse bestätigen',
      note: 'Falls Sie sich nicht registriert haben, können Sie diese E-Mail ignorieren.',
    },
    RECOVERY: {
      subject: 'Setzen Sie Ihr Passwort zurück',
      title: 'Passwort zurücksetzen',
      text: 'Für {{ .Email }} wurde auf {{ .SiteURL }} angefordert, das Passwort zurückzusetzen.',
      button: 'Passwort zurücksetzen',
      note: `${ignore} Ihr Passwort bleibt unverändert.`,
    },
    MAGIC_LINK: {
      subject: 'Ihr Anmeldelink',
      title: 'Anmelden',
      text: 'Mit diesem Link melden Sie sich bei {{ .SiteURL }} an. Er kann nur einmal verwendet werden.',
      button: 'Anmelden',
      note: `${ignore} Geben Sie den Link und den Code nicht an andere weiter.`,
    },
    EMAIL_CHANGE: {
      subject: 'Bestätigen Sie die Änderung Ihrer E-Mail-Adresse',
      title: 'Bestätigen Sie Ihre neue E-Mail-Adresse',
      text: 'Die E-Mail-Adresse Ihres Kontos bei {{ .SiteURL }} soll{{ if .Email }} von {{ .Email }}{{ end }} in {{ .NewEmail }} geändert werden.',
      button: 'Änderung bestätigen',
      note: ignore,
    },
    REAUTHENTICATION: {
      subject: 'Bestätigen Sie Ihre Identität',
      title: 'Bestätigen Sie Ihre Identität',
      text: 'Geben Sie diesen Code ein, um fortzufahren:',
      note: `${ignore} Geben Sie den Code nicht an andere weiter.`,
    },
    PASSWORD_CHANGED_NOTIFICATION: {
      subject: 'Ihr Passwort wurde geändert',
      title: 'Ihr Passwort wurde geändert',
      text: 'Das Passwort für {{ .Email }} wurde geändert.',
    },
    EMAIL_CHANGED_NOTIFICATION: {
      subject: 'Ihre E-Mail-Adresse wurde geändert',
      title: 'Ihre E-Mail-Adresse wurde geändert',
      text: 'Die E-Mail-Adresse Ihres Kontos wurde von {{ .OldEmail }} in {{ .Email }} geändert.',
    },
    PHONE_CHANGED_NOTIFICATION: {
      subject: 'Ihre Telefonnummer wurde geändert',
      title: 'Ihre Telefonnummer wurde geändert',
      text: 'Die Telefonnummer für {{ .Email }} wurde{{ if .OldPhone }} von {{ .OldPhone }}{{ end }} in {{ .Phone }} geändert.',
    },
    IDENTITY_LINKED_NOTIFICATION: {
      subject: 'Eine neue Anmeldemethode wurde hinzugefügt',
      title: 'Eine neue Anmeldemethode wurde hinzugefügt',
      text: 'Sie können sich nun mit {{ .Provider }} beim Konto von {{ .Email }} anmelden.',
    },
    IDENTITY_UNLINKED_NOTIFICATION: {
      subject: 'Eine Anmeldemethode wurde entfernt',
      title: 'Eine Anmeldemethode wurde entfernt',
      text: 'Sie können sich nicht mehr mit {{ .Provider }} beim Konto von {{ .Email }} anmelden.',
    },
    MFA_FACTOR_ENROLLED_NOTIFICATION: {
      subject: 'Ein zweiter Faktor wurde hinzugefügt',
      title: 'Ein zweiter Faktor wurde hinzugefügt',
      text: 'Dem Konto von {{ .Email }} wurde ein zweiter Faktor ({{ .FactorType }}) hinzugefügt.',
    },
    MFA_FACTOR_UNENROLLED_NOTIFICATION: {
      subject: 'Ein zweiter Faktor wurde entfernt',
      title: 'Ein zweiter Faktor wurde entfernt',
      text: 'Vom Konto von {{ .Email }} wurde ein zweiter Faktor ({{ .FactorType }}) entfernt.',
    },
    MFA_FACTORS_LOCKED_NOTIFICATION: {
      subject: 'Ihr zweiter Faktor wurde zu oft falsch eingegeben',
      title: 'Zweiter Faktor gesperrt',
      text: 'Jemand hat sich beim Konto von {{ .Email }} mit dem Passwort angemeldet, aber zu oft einen falschen Code des zweiten Faktors eingegeben. Codes werden nun nur noch aus Netzen angenommen, in denen Sie schon einen verwendet haben. Wenn Sie das nicht waren, ändern Sie Ihr Passwort.',
    },
  },
};
