import t from 'tap';
import { lookupLanguage, parseAcceptLanguage, userLanguages } from '../../src/i18n/languages.ts';

t.test('Accept-Language is sorted by quality; refused and malformed ranges are ignored', async (t) => {
  for (const [header, languages] of [
    ['de-CH, de;q=0.9, en ; q=0.8, *;q=0.5', ['de-CH', 'de', 'en']],
    ['en;q=0.1,FR-fr;q=0.9,ja;q=0', ['fr-FR', 'en']],
    ['*', []],
    ['', []],
    ['x"<script>, de;q=2, es;q=a, languages1, pt_BR, it', ['it']],
    [Array.from({ length: 50 }, () => 'de').join(), Array.from({ length: 12 }, () => 'de')],
  ] as const)
    t.same(parseAcceptLanguage(header), languages, header);
});

t.test('lookup truncates the preferred language until one is available', async (t) => {
  const available = ['en', 'pt', 'zh-Hant'];
  for (const [preferred, found] of [
    [['pt-BR'], 'pt'],
    [['zh-Hant-TW-x-a'], 'zh-Hant'],
    [['zh-Hans', 'PT'], 'pt'],
    [['zh', 'it'], undefined],
  ] as const)
    t.equal(lookupLanguage(preferred, available), found, preferred.join());
});

t.test('a locale that is not a language tag is ignored', async (t) => {
  const acceptLanguage = 'fr';
  for (const [locale, languages] of [
    ['en_US', ['en-US', 'fr']],
    ['<b>', ['fr']],
    [`de-${'x'.repeat(40)}`, ['fr']],
    [7, ['fr']],
  ] as const)
    t.same(userLanguages({ userMetadata: { locale } }, { acceptLanguage }), languages);
});
