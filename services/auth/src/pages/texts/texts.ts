import type { FastifyRequest } from 'fastify';
import type { Settings } from '../../config/settings.ts';
import { parseAcceptLanguage } from '../../i18n/languages.ts';
import { chooseTexts } from '../../i18n/texts/texts.ts';
import { de } from './de.ts';
import { en } from './en.ts';
import { es } from './es.ts';
import { fr } from './fr.ts';
import { ja } from './ja.ts';
import { pt } from './pt.ts';

/** All texts of the pages in a language. */
export type PageTexts = typeof en;

/** By BCP 47 tag: the languages of the built-in mails. */
export const pageLanguages: Readonly<Record<string, PageTexts>> = { en, de, es, fr, ja, pt };

/** The texts for the browser that sends a request, in the languages that the settings allow. */
export function choosePageTexts(
  { headers }: Pick<FastifyRequest, 'headers'>,
  settings: Pick<Settings, 'mailerLanguages' | 'mailerDefaultLanguage'>,
): { readonly language: string; readonly texts: PageTexts } {
  const { language } = chooseTexts(parseAcceptLanguage(headers['accept-language'] ?? ''), settings);
  const texts = pageLanguages[language];
  return texts === undefined ? { language: 'en', texts: en } : { language, texts };
}
