import { bool, type SettingProblem, text } from '@tollgate/kit/settings';
import { svc } from './builders.ts';
import { findUnreadable } from './page-colors.ts';

const group = 'Pages';

export const pageSettings = {
  pagesEnabled: bool({
    ...svc('PAGES_ENABLED'),
    group,
    default: false,
    doc: 'Serve pages for sign-in, sign-up, recovery and the account of a user below `/pages/`. Off: none of their routes exists.',
  }),
  pagesName: text({
    ...svc('PAGES_NAME'),
    group,
    default: '',
    doc: 'Name of the app on the pages of this server. Empty: the host of SITE_URL.',
  }),
  pagesLogoUrl: text({
    ...svc('PAGES_LOGO_URL'),
    group,
    default: '',
    matches: { pattern: /^$|^https?:\/\/[^/?#@\s]+[^#\s]*$/, form: 'an absolute URL with http or https' },
    doc: 'Image that pages show instead of the name, at most 48 pixels high.',
  }),
  pagesLogoFile: text({
    ...svc('PAGES_LOGO_FILE'),
    group,
    default: '',
    doc: 'File with the image, instead of PAGES_LOGO_URL: SVG, PNG, JPEG or WebP, at most 256 KiB. It is served at `/pages/logo`.',
  }),
  pagesColor: text({
    ...svc('PAGES_COLOR'),
    group,
    default: '#1d4ed8',
    matches: { pattern: /^#[0-9a-f]{6}$/i, form: 'a color such as #1d4ed8' },
    doc: 'Color of buttons and links. It must have a contrast of at least 4.5:1 to white (WCAG 2.2). The text of buttons is black or white, whichever has more contrast.',
  }),
  pagesColorDark: text({
    ...svc('PAGES_COLOR_DARK'),
    group,
    default: '',
    matches: { pattern: /^$|^#[0-9a-f]{6}$/i, form: 'a color such as #93c5fd' },
    doc: 'Color of buttons and links in the dark scheme, with a contrast of at least 4.5:1 to `#27272a`. Empty: a lighter shade of PAGES_COLOR.',
  }),
  pagesAccountDeletion: bool({
    ...svc('PAGES_ACCOUNT_DELETION'),
    group,
    default: true,
    doc: 'Let users delete their account on the pages. They confirm it, and need a sign-in of the last ten minutes. Off: only administrators delete users.',
  }),
  pagesCaptchaSiteKey: text({
    ...svc('PAGES_CAPTCHA_SITE_KEY'),
    group,
    default: '',
    doc: 'Public site key of the CAPTCHA provider, for the widget on the pages.',
  }),
};

/** Settings of the pages, as far as needed here. */
interface PageSettings {
  readonly pagesEnabled: boolean;
  readonly apiExternalUrl: string;
  readonly captchaEnabled: boolean;
  readonly pagesCaptchaSiteKey: string;
  readonly extAuthzCookieDomain: string;
  readonly pagesLogoUrl: string;
  readonly pagesLogoFile: string;
  readonly pagesColor: string;
  readonly pagesColorDark: string;
}

interface Names {
  readonly variableName: (key: keyof PageSettings) => string;
}

/** Browsers send the cookie of a session to an unencrypted server only without protection. */
function secureUrl(s: PageSettings, { variableName }: Names): SettingProblem | undefined {
  const { protocol, hostname } = URL.parse(s.apiExternalUrl) ?? {};
  const isLoopback = hostname === 'localhost' || hostname === '[::1]' || hostname?.startsWith('127.');
  if (!s.pagesEnabled || protocol === 'https:' || isLoopback) return undefined;
  const expected = `a URL with https, because ${variableName('pagesEnabled')} is true`;
  return { variable: variableName('apiExternalUrl'), value: s.apiExternalUrl, expected };
}

/** Without it, the pages would have no widget, and all of their requests would be rejected. */
function siteKey(s: PageSettings, { variableName }: Names): SettingProblem | undefined {
  if (!s.pagesEnabled || !s.captchaEnabled || s.pagesCaptchaSiteKey !== '') return undefined;
  const expected = `the site key, because ${variableName('captchaEnabled')} is true`;
  return { variable: variableName('pagesCaptchaSiteKey'), expected };
}

/** Browsers accept the cookie with https only, and only pages create sessions of browsers. */
function cookieDomain(s: PageSettings, { variableName }: Names): SettingProblem | undefined {
  if (s.extAuthzCookieDomain === '') return undefined;
  const because = `because ${variableName('extAuthzCookieDomain')} is set`;
  if (!s.pagesEnabled) return { variable: variableName('pagesEnabled'), expected: `true, ${because}` };
  if (s.apiExternalUrl.startsWith('https:')) return undefined;
  return {
    ...{ variable: variableName('apiExternalUrl'), value: s.apiExternalUrl },
    expected: `a URL with https, ${because}`,
  };
}

function oneLogo(s: PageSettings, { variableName }: Names): SettingProblem | undefined {
  if (s.pagesLogoUrl === '' || s.pagesLogoFile === '') return undefined;
  const expected = `empty, because ${variableName('pagesLogoUrl')} is set`;
  return { variable: variableName('pagesLogoFile'), value: s.pagesLogoFile, expected };
}

const readableColors = (s: PageSettings, { variableName }: Names): SettingProblem | undefined =>
  findUnreadable(s, variableName);

export const pageChecks = [secureUrl, siteKey, cookieDomain, oneLogo, readableColors];
