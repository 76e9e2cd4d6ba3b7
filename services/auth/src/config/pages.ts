import { text } from '@tollgate/kit/settings';
import { svc } from './builders.ts';

const group = 'Pages';

export const pageSettings = {
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
  pagesColor: text({
    ...svc('PAGES_COLOR'),
    group,
    default: '#1d4ed8',
    matches: { pattern: /^#[0-9a-f]{6}$/i, form: 'a color such as #1d4ed8' },
    doc: 'Color of buttons and links. Their text is black or white, whichever has more contrast.',
  }),
};
