import { bool, type Environment, list, type Setting, text } from '@tollgate/kit/settings';
import { canonicalTag } from '../i18n/languages.ts';
import { type MailKind, mailKinds } from '../i18n/texts/mail-kinds.ts';
import { builtInTexts } from '../i18n/texts/texts.ts';
import { svc, textOrDefault } from './builders.ts';
import { type MailCheck, settingProblems } from './mail.ts';

const group = 'Languages';
const builtIn = Object.keys(builtInTexts);

export const languageSettings = {
  mailerLanguages: Object.freeze({
    ...list({
      ...svc('MAILER_LANGUAGES'),
      group,
      default: builtIn,
      doc: 'Languages of built-in texts to use for users who prefer them, in emails and pages. `en`: English only.',
    }),
    form: `some of ${builtIn.join(', ')}, separated by commas`,
    parse: (value: string): readonly string[] | undefined => {
      const tags = value.split(',').flatMap((item) => item.trim() || []);
      return tags.every((tag) => Object.hasOwn(builtInTexts, tag)) ? tags : undefined;
    },
  }),
  mailerDefaultLanguage: Object.freeze({
    ...text({
      ...svc('MAILER_DEFAULT_LANGUAGE'),
      group,
      default: 'en',
      doc: 'Language for other users, and of subjects and templates whose setting names no language.',
    }),
    form: 'a language tag such as en or pt-BR',
    parse: canonicalTag,
  }),
  mailerSaveLocaleEnabled: bool({
    ...svc('MAILER_SAVE_LOCALE_ENABLED'),
    group,
    default: false,
    doc: 'Save the first language of `Accept-Language` as `user_metadata.locale` at sign-up, unless the client sends one. It is then part of user objects and access tokens.',
  }),
};

type LocalizedKey =
  | `mailSubject:${MailKind}:${string}`
  | `mailTemplate:${MailKind}:${string}`
  | `smsTemplate:${string}`
  | `mfaPhoneTemplate:${string}`;

/** Settings for a language, by BCP 47 tag: `mailSubject:INVITE:pt-BR`. */
export type LocalizedSettings = { readonly [K in LocalizedKey]: Setting<string> };

const forms = {
  SUBJECTS: { key: 'mailSubject', doc: 'Subject', problem: settingProblems.subject },
  TEMPLATES: { key: 'mailTemplate', doc: 'URL of the HTML template', problem: settingProblems.urlOrPath },
  SMS_TEMPLATE: { key: 'smsTemplate', doc: 'Text message', problem: settingProblems.textMessage },
  MFA_PHONE_TEMPLATE: { key: 'mfaPhoneTemplate', doc: 'Text message', problem: settingProblems.textMessage },
} as const;

const namePattern = new RegExp(
  `^(?:SVC|GOTRUE)_(?:MAILER_(SUBJECTS|TEMPLATES)_(${mailKinds.join('|')})|(SMS_TEMPLATE|MFA_PHONE_TEMPLATE))_([A-Z]{2,3}(?:_[A-Z0-9]{1,8})*)$`,
);

/** The settings for languages in an environment, and their checks. */
export function localizedSettings(env: Environment): {
  readonly spec: LocalizedSettings;
  readonly checks: readonly MailCheck[];
} {
  const found = Object.keys(env).flatMap((variable) => {
    const [, mailForm, kind, smsForm, suffix = ''] = namePattern.exec(variable) ?? [];
    const form = forms[(mailForm ?? smsForm ?? 'SUBJECTS') as keyof typeof forms]; // of the pattern
    const tag = suffix === '' ? undefined : canonicalTag(suffix);
    if (tag === undefined) return [];
    const key = [form.key, ...(kind === undefined ? [] : [kind]), tag].join(':') as LocalizedKey; // as in the pattern
    const name = variable.slice(variable.indexOf('_') + 1);
    const setting = textOrDefault({ ...svc(name), group, default: '', doc: `${form.doc} in ${tag}.` });
    const problem = (value: string) => (value === '' ? undefined : form.problem(value));
    return [{ key, setting, check: { key, problem } }];
  });
  return {
    spec: Object.fromEntries(found.map(({ key, setting }) => [key, setting])),
    checks: found.map(({ check }) => check),
  };
}
