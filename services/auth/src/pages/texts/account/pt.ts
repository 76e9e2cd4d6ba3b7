import type { AccountTexts } from './en.ts';

export const account: AccountTexts = {
  security: 'Acesso e segurança',
  applications: 'Aplicativos conectados',
  applicationsText: 'Você deu a estes aplicativos acesso à sua conta.',
  noApplications: 'Nenhum aplicativo tem acesso à sua conta.',
  accessTo: (resource) => `Para ${resource}`,
  accessSince: 'acesso desde:',
  revokeAccess: 'Revogar o acesso',
  signedInAt: 'entrada:',

  addPhone: 'Adicionar um número de telefone',
  changePhone: 'Alterar o número de telefone',
  phoneCodeTitle: 'Confirme seu número de telefone',
  phoneCodeText: (phone) => `Enviamos um código para ${phone}. Informe-o.`,

  passkeys: 'Chaves de acesso',
  passkeysText: 'Com uma chave de acesso, você entra com a impressão digital, o rosto ou o bloqueio de tela.',
  passkey: 'Chave de acesso',
  passkeyAdded: 'adicionada:',
  addPasskey: 'Adicionar uma chave de acesso',
  addPasskeyText:
    'O navegador pergunta onde guardar a chave de acesso: neste dispositivo, em um celular ou em uma chave de segurança.',
  passkeyNotCreated: 'Nenhuma chave de acesso foi criada. Tente novamente.',
  passkeyNotFound: 'Esta chave de acesso foi removida.',
  rename: 'Renomear',
  renamePasskey: 'Renomear a chave de acesso',
  removePasskey: 'Remover a chave de acesso',
  removePasskeyText: (name) => `Você não poderá mais entrar com ${name}.`,

  yourData: 'Seus dados',
  downloadData: 'Baixar seus dados',
  downloadText:
    'Você recebe um arquivo JSON com o que está armazenado sobre você: perfil, formas de entrar, sessões, aplicativos, organizações, chaves de API e suas ações. Ele não contém segredos.',
  confirmDeletion: 'Entendo que isso não pode ser desfeito.',

  saved: {
    application: 'O aplicativo não tem mais acesso.',
    phone: 'Seu número de telefone foi salvo.',
    passkey: 'A chave de acesso foi adicionada.',
    'passkey-renamed': 'O nome foi salvo.',
    'passkey-removed': 'A chave de acesso foi removida.',
  },

  errors: {
    oauth_consent_not_found: 'Este aplicativo não tem mais acesso.',
    webauthn_credential_exists: 'Esta chave de acesso já foi adicionada.',
    too_many_passkeys: 'Você tem o número máximo de chaves de acesso. Remova uma primeiro.',
  },
};
