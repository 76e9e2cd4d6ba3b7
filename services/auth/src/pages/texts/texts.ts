import type { FastifyRequest } from 'fastify';
import type { Settings } from '../../config/settings.ts';
import { parseAcceptLanguage } from '../../i18n/languages.ts';
import { chooseTexts } from '../../i18n/texts/texts.ts';
import { de } from './de.ts';
import { en, type PageTexts } from './en.ts';
import { es } from './es.ts';
import { fr } from './fr.ts';
import { ja } from './ja.ts';
import { pt } from './pt.ts';

/** A text without parameters. */
export type TextKey = {
  [Key in keyof PageTexts]: PageTexts[Key] extends string ? Key : never;
}[keyof PageTexts];

/** By BCP 47 tag: the languages of the built-in mails. */
export const pageLanguages: Readonly<Record<string, PageTexts>> = { en, de, es, fr, ja, pt };

/**
 * The texts for the browser that sends a request, in the languages that the settings allow. Those
 * of `ui_locales` precede those of the browser.
 *
 * @see OpenID Connect Core §3.1.2.1
 */
export function choosePageTexts(
  { headers, query }: Pick<FastifyRequest, 'headers' | 'query'>,
  settings: Pick<Settings, 'mailerLanguages' | 'mailerDefaultLanguage'>,
): { readonly language: string; readonly texts: PageTexts } {
  const { ui_locales: locales } = query as { readonly ui_locales?: unknown }; // any parameters
  const wanted = typeof locales === 'string' ? locales.split(' ').join(',') : '';
  const preferred = [wanted, headers['accept-language'] ?? ''].flatMap(parseAcceptLanguage);
  const { language } = chooseTexts(preferred, settings);
  const texts = pageLanguages[language];
  return texts === undefined ? { language: 'en', texts: en } : { language, texts };
}

/** The name of a role. Roles of the settings have no translation. */
export function roleLabel(role: string, { roles }: PageTexts): string {
  return Object.hasOwn(roles, role) ? roles[role as keyof typeof roles] : role; // a key of it
}
