import type { Texts } from './texts.ts';

const ignore = 'Se você não fez esta solicitação, ignore este e-mail.';

export const pt: Texts = {
  openLink: 'Se o botão não funcionar, abra este link:',
  enterCode: 'Ou digite este código:',
  report: 'Se você não fez esta alteração, entre em contato imediatamente com o suporte de {{ .SiteURL }}.',
  linkPage: { title: 'Continuar', text: 'Clique no botão para continuar.', button: 'Continuar' },
  returnToDevice:
    'Você voltará para um aplicativo deste dispositivo. Continue somente se você mesmo iniciou o acesso.',
  mails: {
    INVITE: {
      subject: 'Você recebeu um convite',
      title: 'Você recebeu um convite',
      text: 'Você foi convidado(a) a criar uma conta em {{ .SiteURL }}.',
      button: 'Aceitar o convite',
      note: 'Se você não esperava este convite, ignore este e-mail.',
    },
    ORGANIZATION_INVITE: {
      subject: 'Convite para {{ .OrganizationName }}',
      title: 'Participar de {{ .OrganizationName }}',
      text: '{{ .InvitedBy }} convidou você para participar de {{ .OrganizationName }} em {{ .SiteURL }} com o endereço {{ .Email }}.',
      button: 'Abrir o convite',
      note: 'Se você não esperava este convite, pode ignorar este e-mail.',
    },
    CONFIRMATION: {
      subject: 'Confirme seu cadastro',
      title: 'Confirme seu endereço de e-mail',
      text: 'Você se cadastrou em {{ .SiteURL }} com o endereço {{ .Email }}.',
      button: 'Confirmar endereço de e-mail',
      note: 'Se você não se cadastrou, ignore este e-mail.',
    },
    RECOVERY: {
      subject: 'Redefina sua senha',
      title: 'Redefina sua senha',
      text: 'Recebemos uma solicitação para redefinir a senha de {{ .Email }} em {{ .SiteURL }}.',
      button: 'Redefinir senha',
      note: `${ignore} Sua senha não será alterada.`,
    },
    MAGIC_LINK: {
      subject: 'Seu link de acesso',
      title: 'Entrar',
      text: 'Use este link para entrar em {{ .SiteURL }}. Ele só pode ser usado uma vez.',
      button: 'Entrar',
      note: `${ignore} Não compartilhe o link nem o código com ninguém.`,
    },
    EMAIL_CHANGE: {
      subject: 'Confirme a alteração de e-mail',
      title: 'Confirme seu novo endereço de e-mail',
      text: 'Recebemos uma solicitação para alterar o endereço de e-mail da sua conta em {{ .SiteURL }}{{ if .Email }} de {{ .Email }}{{ end }} para {{ .NewEmail }}.',
      button: 'Confirmar a alteração',
      note: ignore,
    },
    REAUTHENTICATION: {
      subject: 'Confirme sua identidade',
      title: 'Confirme sua identidade',
      text: 'Digite este código para continuar:',
      note: `${ignore} Não compartilhe o código com ninguém.`,
    },
    PASSWORD_CHANGED_NOTIFICATION: {
      subject: 'Sua senha foi alterada',
      title: 'Sua senha foi alterada',
      text: 'A senha de {{ .Email }} foi alterada.',
    },
    EMAIL_CHANGED_NOTIFICATION: {
      subject: 'Seu endereço de e-mail foi alterado',
      title: 'Seu endereço de e-mail foi alterado',
      text: 'O endereço de e-mail da sua conta foi alterado de {{ .OldEmail }} para {{ .Email }}.',
    },
    PHONE_CHANGED_NOTIFICATION: {
      subject: 'Seu número de telefone foi alterado',
      title: 'Seu número de telefone foi alterado',
      text: 'O número de telefone de {{ .Email }} foi alterado{{ if .OldPhone }} de {{ .OldPhone }}{{ end }} para {{ .Phone }}.',
    },
    IDENTITY_LINKED_NOTIFICATION: {
      subject: 'Um método de login foi adicionado',
      title: 'Um método de login foi adicionado',
      text: 'Agora você pode entrar na conta de {{ .Email }} com {{ .Provider }}.',
    },
    IDENTITY_UNLINKED_NOTIFICATION: {
      subject: 'Um método de login foi removido',
      title: 'Um método de login foi removido',
      text: 'Não é mais possível entrar na conta de {{ .Email }} com {{ .Provider }}.',
    },
    MFA_FACTOR_ENROLLED_NOTIFICATION: {
      subject: 'Um segundo fator foi adicionado',
      title: 'Um segundo fator foi adicionado',
      text: 'Um segundo fator ({{ .FactorType }}) foi adicionado à conta de {{ .Email }}.',
    },
    MFA_FACTOR_UNENROLLED_NOTIFICATION: {
      subject: 'Um segundo fator foi removido',
      title: 'Um segundo fator foi removido',
      text: 'Um segundo fator ({{ .FactorType }}) foi removido da conta de {{ .Email }}.',
    },
    MFA_FACTORS_LOCKED_NOTIFICATION: {
      subject: 'O seu segundo fator foi introduzido incorretamente demasiadas vezes',
      title: 'Segundo fator bloqueado',
      text: 'Alguém iniciou sessão na conta de {{ .Email }} com a palavra-passe, mas introduziu demasiados códigos errados do segundo fator. Agora só são aceites códigos de redes em que já usou um. Se não foi você, altere a sua palavra-passe.',
    },
  },
};
