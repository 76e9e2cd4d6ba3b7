import type { Settings } from '../config/settings.ts';

type ContextSettings = Pick<
  Settings,
  'passwordRejectContext' | 'passwordContextWords' | 'siteUrl' | 'pagesName'
>;

/** Shorter words are part of many others. */
const minWordChars = 4;

/**
 * Whether a password contains a word that an attacker would try first for this user on this site.
 *
 * @see OWASP ASVS 5.0 6.2.11
 */
export function containsContextWord(
  password: string,
  contacts: readonly string[],
  settings: ContextSettings,
): boolean {
  if (!settings.passwordRejectContext) return false;
  const compared = normalize(password);
  return contextWords(contacts, settings).some((word) => compared.includes(word));
}

/** @returns normalized words */
function contextWords(contacts: readonly string[], settings: ContextSettings): readonly string[] {
  const { siteUrl, pagesName, passwordContextWords } = settings;
  const names = contacts.flatMap((contact) => {
    const name = contact.replace(/@[^@]*$/, '');
    return [name, ...name.split(/[^\p{L}\p{N}]+/u)];
  });
  return [...names, siteLabel(siteUrl), pagesName, ...passwordContextWords]
    .map(normalize)
    .filter((word) => [...word].length >= minWordChars);
}

/** The longest label of a host, without its top-level domain: `notes` of `www.notes.example`. */
function siteLabel(siteUrl: string): string {
  const host = URL.canParse(siteUrl) ? new URL(siteUrl).hostname : '';
  const labels = host.split('.').slice(0, -1);
  return labels.toSorted((a, b) => b.length - a.length)[0] ?? '';
}

/** Letters and digits in lower case. */
function normalize(text: string): string {
  return text
    .normalize('NFKC')
    .toLowerCase()
    .replaceAll(/[^\p{L}\p{N}]/gu, '');
}
