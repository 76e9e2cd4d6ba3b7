import { lookupLanguage } from '../languages.ts';
import { de } from './de.ts';
import { en } from './en.ts';
import { es } from './es.ts';
import { fr } from './fr.ts';
import { ja } from './ja.ts';
import type { MailKind } from './mail-kinds.ts';
import { pt } from './pt.ts';

/** Texts of one kind of mail. All but the subject are templates for the body. */
interface MailText {
  readonly subject: string;
  readonly title: string;
  /** Event, or the required action. */
  readonly text: string;
  /** Label of the link. Absent for a mail without link. */
  readonly button?: string;
  /** Advice. Absent: `report`. */
  readonly note?: string;
}

/** All texts of a language. */
export interface Texts {
  /** Precedes the URL of a link. */
  readonly openLink: string;
  /** Precedes the code of a mail with a link. */
  readonly enterCode: string;
  /** Advice of notifications. */
  readonly report: string;
  /** Page that links open with MAILER_LINK_PAGE_ENABLED. */
  readonly linkPage: {
    readonly text: string;
    /** Title and button for links of other types than those of mails. */
    readonly title: string;
    readonly button: string;
  };
  /** Precedes the return to an application that any program of the device can pretend to be. */
  readonly returnToDevice: string;
  readonly mails: Readonly<Record<MailKind, MailText>>;
}

/** Texts by BCP 47 tag. A new language is a file and an entry here. */
export const builtInTexts: Readonly<Record<string, Texts>> = { en, de, es, fr, ja, pt };

/** The settings of languages. */
interface LanguageSettings {
  readonly mailerLanguages: readonly string[];
  readonly mailerDefaultLanguage: string;
}

/** Built-in texts and their language. */
interface LanguageTexts {
  readonly language: string;
  readonly texts: Texts;
}

/** The built-in texts closest to a language: its own, those of the default language, or English. */
export function closestTexts(
  language: string,
  { mailerDefaultLanguage }: Pick<LanguageSettings, 'mailerDefaultLanguage'>,
): LanguageTexts {
  const found = lookupLanguage([language, mailerDefaultLanguage], Object.keys(builtInTexts)) ?? 'en';
  return { language: found, texts: builtInTexts[found] ?? en };
}

/** The built-in texts for a user who prefers some languages, as far as the settings allow these. */
export function chooseTexts(preferred: readonly string[], settings: LanguageSettings): LanguageTexts {
  const { mailerLanguages, mailerDefaultLanguage } = settings;
  const language = lookupLanguage(preferred, [mailerDefaultLanguage, ...mailerLanguages]);
  return closestTexts(language ?? mailerDefaultLanguage, settings);
}
