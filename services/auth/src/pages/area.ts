import { type Html, html } from '@tollgate/kit/html';
import type { Settings } from '../config/settings.ts';
import { notice, problemSummary } from './forms.ts';
import type { Outcome, PageDefinition, View } from './page.ts';
import { describeCode } from './problems.ts';
import type { PageTexts } from './texts/en.ts';
import type { TextKey } from './texts/texts.ts';
import type { Owner, Visit } from './visit.ts';

interface Area {
  /** Key of the title, which is also the link in the navigation. */
  readonly title: TextKey;
  /** Default: always. */
  readonly isEnabled?: (settings: Settings) => boolean;
}

/** Pages of the account area, in the order of the navigation. */
const areas = {
  account: { title: 'yourAccount' },
  security: { title: 'security' },
  sessions: { title: 'sessions' },
  applications: { title: 'applications', isEnabled: (settings) => settings.oauthServerEnabled },
  organizations: { title: 'organizations', isEnabled: (settings) => settings.organizationsEnabled },
  'api-keys': {
    title: 'apiKeys',
    isEnabled: (settings) => settings.apiKeysEnabled && settings.apiKeysSelfService,
  },
  data: { title: 'yourData' },
} as const satisfies Readonly<Record<string, Area>>;

export type AreaName = keyof typeof areas;

const areaEntries: readonly (readonly [string, Area])[] = Object.entries(areas);

type Content = (visit: Visit, owner: Owner, outcome: Outcome) => Promise<Html> | Html;

/** A page of the account area, for users who are signed in. */
export function areaPage(name: AreaName, content: Content): PageDefinition {
  const area: Area = areas[name];
  return {
    name,
    access: 'user',
    isEnabled: area.isEnabled,
    view: async (visit, outcome) =>
      areaView(visit, name, {
        title: visit.texts[area.title],
        outcome,
        content: visit.owner && (await content(visit, visit.owner, outcome)),
      }),
  };
}

/** A form on a page of the area, which then shows what has changed. */
export function areaForm(
  home: PageDefinition,
  name: string,
  submit: (visit: Visit, owner: Owner) => Promise<keyof PageTexts['saved']>,
  options: Pick<PageDefinition, 'limiter' | 'isSensitive'> = {},
): PageDefinition {
  return {
    ...home,
    ...options,
    name,
    home: home.name,
    hasPage: false,
    async submit(visit) {
      const { owner } = visit;
      if (owner === undefined) return visit.redirect('sign-in');
      return visit.redirect(home.name, { saved: await submit(visit, owner) });
    },
  };
}

/** The navigation, what the last form has changed or why it failed, and the content of a page. */
export function areaView(
  visit: Visit,
  current: AreaName,
  page: { readonly title: string; readonly outcome: Outcome; readonly content: Html | undefined },
): View {
  const { query, texts } = visit;
  const { problem = describeCode(query.error_code, texts) } = page.outcome;
  return {
    title: page.title,
    isWide: true,
    ...(problem && { problem }),
    content: html`${navigation(visit, current)}
${problemSummary(problem)}
${problem === undefined && notice(findNotice(visit))}
${page.content}`,
  };
}

function navigation(visit: Visit, current: AreaName): Html {
  const { texts, context } = visit;
  const links = areaEntries
    .filter(([, { isEnabled = () => true }]) => isEnabled(context.settings))
    .map(
      ([name, { title }]) =>
        html`<li><a href="${visit.path(name)}"${name === current && html` aria-current="page"`}>${texts[title]}</a></li>`,
    );
  return html`<nav aria-label="${texts.yourAccount}"><ul class="areas">${links}</ul></nav>`;
}

function findNotice({ query: { saved = '', message }, texts }: Visit): string | undefined {
  if (message !== undefined) return texts.otherAddress;
  // A key of it.
  return Object.hasOwn(texts.saved, saved) ? texts.saved[saved as keyof PageTexts['saved']] : undefined;
}

/** The link from a page without navigation. */
export function backTo(visit: Visit, area: AreaName): Html {
  return html`<p class="after"><a href="${visit.path(area)}">${visit.texts.backToAccount}</a></p>`;
}

/** A time as pages show it. */
export function time(at: Date): Html {
  const iso = at.toISOString();
  return html`<time datetime="${iso}">${iso.slice(0, 16).replace('T', ' ')} UTC</time>`;
}
