import type { AccountTexts } from './en.ts';

export const account: AccountTexts = {
  security: 'ログインとセキュリティ',
  applications: '連携中のアプリ',
  applicationsText: '次のアプリにアカウントへのアクセスを許可しています。',
  noApplications: 'アカウントへのアクセスを許可しているアプリはありません。',
  accessTo: (resource) => `対象: ${resource}`,
  accessSince: 'アクセス開始:',
  revokeAccess: 'アクセスを取り消す',
  signedInAt: 'ログイン:',

  addPhone: '電話番号を追加',
  changePhone: '電話番号を変更',
  phoneCodeTitle: '電話番号の確認',
  phoneCodeText: (phone) => `${phone} にコードを送信しました。入力してください。`,

  passkeys: 'パスキー',
  passkeysText: 'パスキーを使うと、指紋、顔、または画面ロックでログインできます。',
  passkey: 'パスキー',
  passkeyAdded: '追加:',
  addPasskey: 'パスキーを追加',
  addPasskeyText:
    'パスキーの保存先（このデバイス、スマートフォン、セキュリティキー）をブラウザーが確認します。',
  passkeyNotCreated: 'パスキーは作成されませんでした。もう一度お試しください。',
  passkeyNotFound: 'このパスキーは削除されています。',
  rename: '名前を変更',
  renamePasskey: 'パスキーの名前を変更',
  removePasskey: 'パスキーを削除',
  removePasskeyText: (name) => `${name} ではログインできなくなります。`,

  yourData: 'あなたのデータ',
  downloadData: 'データをダウンロード',
  downloadText:
    '保存されているあなたの情報（プロフィール、ログイン方法、セッション、アプリ、組織、API キー、操作の記録）を JSON ファイルで受け取ります。秘密の値は含まれません。',
  confirmDeletion: '元に戻せないことを理解しました。',

  saved: {
    application: 'アプリのアクセスを取り消しました。',
    phone: '電話番号を保存しました。',
    passkey: 'パスキーを追加しました。',
    'passkey-renamed': '名前を保存しました。',
    'passkey-removed': 'パスキーを削除しました。',
  },

  errors: {
    oauth_consent_not_found: 'このアプリのアクセスはすでに取り消されています。',
    webauthn_credential_exists: 'このパスキーはすでに追加されています。',
    too_many_passkeys: 'パスキーの数が上限に達しています。先に 1 つ削除してください。',
  },
};
