import { type Settings, settingsSpec } from '../config/settings.ts';
import { lookupLanguage } from '../i18n/languages.ts';
import { type MailKind, mailKinds } from '../i18n/texts/mail-kinds.ts';
import { closestTexts } from '../i18n/texts/texts.ts';

/** Where subject and body of a kind of mail come from, in one language. */
export interface MailSource {
  readonly kind: MailKind;
  readonly language: string;
  /** A template. */
  readonly subject: string;
  /** URL of the template of the body, or a path below SITE_URL. Empty: the built-in text. */
  readonly location: string;
  /** Language of the built-in text, which also replaces a template that is unavailable. */
  readonly builtIn: string;
}

/** The sources of a kind by language; the first is for users of other languages. */
type MailSources = readonly [MailSource, ...MailSource[]];

/** The sources of all kinds of mail. */
export function readMailSources(settings: Settings): ReadonlyMap<MailKind, MailSources> {
  return new Map(mailKinds.map((kind) => [kind, readKind(settings, kind)] as const));
}

/**
 * A subject or template without a language is for all users: an operator who sets one does not
 * expect built-in texts of other languages beside it.
 */
function readKind(settings: Settings, kind: MailKind): MailSources {
  const { mailerDefaultLanguage, mailerLanguages } = settings;
  const subject = settings[`mailSubject:${kind}`];
  const ownSubject = subject === settingsSpec[`mailSubject:${kind}`].fallback?.value ? '' : subject;
  const ownLocation = settings[`mailTemplate:${kind}`];
  const isCustom = ownSubject !== '' || ownLocation !== '';
  const toSource = (language: string): MailSource => {
    const { language: builtIn, texts } = closestTexts(language, settings);
    return {
      kind,
      language,
      subject: settings[`mailSubject:${kind}:${language}`] || ownSubject || texts.mails[kind].subject,
      location: settings[`mailTemplate:${kind}:${language}`] || ownLocation,
      builtIn,
    };
  };
  const others = new Set([
    ...localizedTags(settings, `mailSubject:${kind}:`),
    ...localizedTags(settings, `mailTemplate:${kind}:`),
    ...(isCustom ? [] : mailerLanguages),
  ]);
  others.delete(mailerDefaultLanguage);
  return [toSource(mailerDefaultLanguage), ...[...others].map(toSource)];
}

/** Tags of the settings that are set for a language. */
export function localizedTags(
  settings: Settings,
  prefix: `mailSubject:${MailKind}:` | `mailTemplate:${MailKind}:` | 'smsTemplate:' | 'mfaPhoneTemplate:',
): readonly string[] {
  return Object.entries(settings).flatMap(([key, value]) =>
    key.startsWith(prefix) && value !== '' ? [key.slice(prefix.length)] : [],
  );
}

/** The source in the language that a user prefers. */
export function chooseSource(sources: MailSources, preferred: readonly string[]): MailSource {
  const [fallback] = sources;
  const language = lookupLanguage(
    preferred,
    sources.map((source) => source.language),
  );
  return sources.find((source) => source.language === language) ?? fallback;
}
