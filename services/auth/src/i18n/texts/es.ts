import type { Texts } from './texts.ts';

const ignore = 'Si no has solicitado esto, puedes ignorar este correo.';

export const es: Texts = {
  openLink: 'Si el botón no funciona, abre este enlace:',
  enterCode: 'O introduce este código:',
  report:
    'Si no has realizado este cambio, ponte en contacto de inmediato con el equipo de soporte de {{ .SiteURL }}.',
  linkPage: { title: 'Continuar', text: 'Pulsa el botón para continuar.', button: 'Continuar' },
  returnToDevice:
    'Volverás a una aplicación de este dispositivo. Continúa solo si has empezado tú el inicio de sesión.',
  mails: {
    INVITE: {
      subject: 'Has recibido una invitación',
      title: 'Has recibido una invitación',
      text: 'Te han invitado a crear una cuenta en {{ .SiteURL }}.',
      button: 'Aceptar la invitación',
      note: 'Si no esperabas esta invitación, puedes ignorar este correo.',
    },
    ORGANIZATION_INVITE: {
      subject: 'Invitación a {{ .OrganizationName }}',
      title: 'Únete a {{ .OrganizationName }}',
      text: '{{ .InvitedBy }} te ha invitado a unirte a {{ .OrganizationName }} en {{ .SiteURL }} con la dirección {{ .Email }}.',
      button: 'Abrir la invitación',
      note: 'Si no esperabas esta invitación, puedes ignorar este correo.',
    },
    CONFIRMATION: {
      subject: 'Confirma tu registro',
      title: 'Confirma tu dirección de correo electrónico',
      text: 'Te has registrado en {{ .SiteURL }} con la dirección {{ .Email }}.',
      button: 'Confirmar la dirección',
      note: 'Si no te has registrado, puedes ignorar este correo.',
    },
    RECOVERY: {
      subject: 'Restablece tu contraseña',
      title: 'Restablece tu contraseña',
      text: 'Hemos recibido una solicitud para restablecer la contraseña de {{ .Email }} en {{ .SiteURL }}.',
      button: 'Restablecer la contraseña',
      note: `${ignore} Tu contraseña no cambiará.`,
    },
    MAGIC_LINK: {
      subject: 'Tu enlace de acceso',
      title: 'Inicia sesión',
      text: 'Usa este enlace para iniciar sesión en {{ .SiteURL }}. Solo se puede usar una vez.',
      button: 'Iniciar sesión',
      note: `${ignore} No compartas el enlace ni el código con nadie.`,
    },
    EMAIL_CHANGE: {
      subject: 'Confirma el cambio de correo electrónico',
      title: 'Confirma tu nueva dirección de correo electrónico',
      text: 'Hemos recibido una solicitud para cambiar la dirección de correo electrónico de tu cuenta en {{ .SiteURL }}{{ if .Email }} de {{ .Email }}{{ end }} a {{ .NewEmail }}.',
      button: 'Confirmar el cambio',
      note: ignore,
    },
    REAUTHENTICATION: {
      subject: 'Confirma tu identidad',
      title: 'Confirma tu identidad',
      text: 'Introduce este código para continuar:',
      note: `${ignore} No compartas el código con nadie.`,
    },
    PASSWORD_CHANGED_NOTIFICATION: {
      subject: 'Se ha cambiado tu contraseña',
      title: 'Se ha cambiado tu contraseña',
      text: 'Se ha cambiado la contraseña de {{ .Email }}.',
    },
    EMAIL_CHANGED_NOTIFICATION: {
      subject: 'Se ha cambiado tu dirección de correo electrónico',
      title: 'Se ha cambiado tu dirección de correo electrónico',
      text: 'La dirección de correo electrónico de tu cuenta se ha cambiado de {{ .OldEmail }} a {{ .Email }}.',
    },
    PHONE_CHANGED_NOTIFICATION: {
      subject: 'Se ha cambiado tu número de teléfono',
      title: 'Se ha cambiado tu número de teléfono',
      text: 'El número de teléfono de {{ .Email }} se ha cambiado{{ if .OldPhone }} de {{ .OldPhone }}{{ end }} a {{ .Phone }}.',
    },
    IDENTITY_LINKED_NOTIFICATION: {
      subject: 'Se ha añadido un método de inicio de sesión',
      title: 'Se ha añadido un método de inicio de sesión',
      text: 'Ahora puedes iniciar sesión en la cuenta de {{ .Email }} con {{ .Provider }}.',
    },
    IDENTITY_UNLINKED_NOTIFICATION: {
      subject: 'Se ha eliminado un método de inicio de sesión',
      title: 'Se ha eliminado un método de inicio de sesión',
      text: 'Ya no puedes iniciar sesión en la cuenta de {{ .Email }} con {{ .Provider }}.',
    },
    MFA_FACTOR_ENROLLED_NOTIFICATION: {
      subject: 'Se ha añadido un segundo factor',
      title: 'Se ha añadido un segundo factor',
      text: 'Se ha añadido un segundo factor ({{ .FactorType }}) a la cuenta de {{ .Email }}.',
    },
    MFA_FACTOR_UNENROLLED_NOTIFICATION: {
      subject: 'Se ha eliminado un segundo factor',
      title: 'Se ha eliminado un segundo factor',
      text: 'Se ha eliminado un segundo factor ({{ .FactorType }}) de la cuenta de {{ .Email }}.',
    },
    MFA_FACTORS_LOCKED_NOTIFICATION: {
      subject: 'Tu segundo factor se ha introducido mal demasiadas veces',
      title: 'Segundo factor bloqueado',
      text: 'Alguien inició sesión en la cuenta de {{ .Email }} con la contraseña, pero introdujo demasiados códigos erróneos del segundo factor. Ahora solo se aceptan códigos desde redes en las que ya usaste uno. Si no fuiste tú, cambia tu contraseña.',
    },
  },
};
