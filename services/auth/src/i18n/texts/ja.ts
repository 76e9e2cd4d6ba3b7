import type { Texts } from './texts.ts';

const ignore = 'お心当たりがない場合は、このメールを無視してください。';

export const ja: Texts = {
  openLink: 'ボタンが機能しない場合は、次のリンクを開いてください。',
  enterCode: 'または、次のコードを入力してください:',
  report: 'この変更にお心当たりがない場合は、ただちに {{ .SiteURL }} のサポートまでご連絡ください。',
  linkPage: { title: '続行', text: '続行するには、ボタンを押してください。', button: '続行' },
  returnToDevice:
    'このデバイス上のアプリケーションに戻ります。ご自身でログインを開始した場合にのみ続行してください。',
  mails: {
    INVITE: {
      subject: 'ご招待のお知らせ',
      title: 'ご招待のお知らせ',
      text: '{{ .SiteURL }} のアカウント作成に招待されました。',
      button: '招待を承諾する',
      note: ignore,
    },
    ORGANIZATION_INVITE: {
      subject: '{{ .OrganizationName }} への招待',
      title: '{{ .OrganizationName }} に参加する',
      text: '{{ .InvitedBy }} さんから、{{ .SiteURL }} の {{ .OrganizationName }} に {{ .Email }} で参加するよう招待されています。',
      button: '招待を開く',
      note: 'この招待に心当たりがない場合は、このメールを無視してください。',
    },
    CONFIRMATION: {
      subject: 'ご登録の確認',
      title: 'メールアドレスの確認',
      text: 'メールアドレス {{ .Email }} で {{ .SiteURL }} への登録がありました。',
      button: 'メールアドレスを確認する',
      note: ignore,
    },
    RECOVERY: {
      subject: 'パスワードの再設定',
      title: 'パスワードの再設定',
      text: '{{ .SiteURL }} の {{ .Email }} について、パスワード再設定のリクエストを受け付けました。',
      button: 'パスワードを再設定する',
      note: `${ignore}パスワードは変更されません。`,
    },
    MAGIC_LINK: {
      subject: 'ログイン用リンクのお知らせ',
      title: 'ログイン',
      text: '次のリンクから {{ .SiteURL }} にログインできます。リンクは1回のみ有効です。',
      button: 'ログインする',
      note: `${ignore}リンクとコードは他の人に共有しないでください。`,
    },
    EMAIL_CHANGE: {
      subject: 'メールアドレス変更の確認',
      title: '新しいメールアドレスの確認',
      text: '{{ .SiteURL }} のアカウントのメールアドレスを{{ if .Email }} {{ .Email }} から{{ end }} {{ .NewEmail }} に変更するリクエストを受け付けました。',
      button: '変更を確認する',
      note: ignore,
    },
    REAUTHENTICATION: {
      subject: '本人確認のお願い',
      title: '本人確認',
      text: '続行するには、次のコードを入力してください:',
      note: `${ignore}コードは他の人に共有しないでください。`,
    },
    PASSWORD_CHANGED_NOTIFICATION: {
      subject: 'パスワードが変更されました',
      title: 'パスワードが変更されました',
      text: '{{ .Email }} のパスワードが変更されました。',
    },
    EMAIL_CHANGED_NOTIFICATION: {
      subject: 'メールアドレスが変更されました',
      title: 'メールアドレスが変更されました',
      text: 'アカウントのメールアドレスが {{ .OldEmail }} から {{ .Email }} に変更されました。',
    },
    PHONE_CHANGED_NOTIFICATION: {
      subject: '電話番号が変更されました',
      title: '電話番号が変更されました',
      text: '{{ .Email }} の電話番号が{{ if .OldPhone }} {{ .OldPhone }} から{{ end }} {{ .Phone }} に変更されました。',
    },
    IDENTITY_LINKED_NOTIFICATION: {
      subject: 'ログイン方法が追加されました',
      title: 'ログイン方法が追加されました',
      text: '{{ .Provider }} で {{ .Email }} のアカウントにログインできるようになりました。',
    },
    IDENTITY_UNLINKED_NOTIFICATION: {
      subject: 'ログイン方法が削除されました',
      title: 'ログイン方法が削除されました',
      text: '{{ .Provider }} では {{ .Email }} のアカウントにログインできなくなりました。',
    },
    MFA_FACTOR_ENROLLED_NOTIFICATION: {
      subject: '二要素認証が追加されました',
      title: '二要素認証が追加されました',
      text: '{{ .Email }} のアカウントに二要素認証({{ .FactorType }})が追加されました。',
    },
    MFA_FACTOR_UNENROLLED_NOTIFICATION: {
      subject: '二要素認証が削除されました',
      title: '二要素認証が削除されました',
      text: '{{ .Email }} のアカウントから二要素認証({{ .FactorType }})が削除されました。',
    },
    MFA_FACTORS_LOCKED_NOTIFICATION: {
      subject: '二要素認証のコードが何度も間違って入力されました',
      title: '二要素認証をロックしました',
      text: '{{ .Email }} のアカウントに正しいパスワードでログインした後、二要素認証のコードが何度も間違って入力されました。現在は、以前にコードを使用したネットワークからのみコードを受け付けます。お心当たりがない場合は、パスワードを変更してください。',
    },
  },
};
