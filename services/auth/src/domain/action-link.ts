/** What a link in a mail is made of. */
export interface ActionLinkParts {
  /** API_EXTERNAL_URL. */
  readonly externalUrl: string;
  /** Resolved against `externalUrl`: a path that begins with `/` takes the place of its whole path. */
  readonly path: string;
  /** Hash of the code, with its prefix. */
  readonly token: string;
  /** What `/verify` is to do: `signup`, `recovery`, … */
  readonly type: string;
  /** Where the user goes in the end; the allow-list has been asked. */
  readonly redirectTo: string;
}

/** Characters that a query may hold as they are. Clients look for the target in the link, so that it is only encoded when it must be. */
const plainTarget = /^[\w:/?.~!$'()*,;@-]*$/;

/** The link that is mailed. */
export function actionLink({ externalUrl, path, token, type, redirectTo }: ActionLinkParts): string {
  const { origin, pathname } = new URL(path, externalUrl);
  const target = plainTarget.test(redirectTo) ? redirectTo : encodeURIComponent(redirectTo);
  return `${origin}${pathname}?token=${token}&type=${type}&redirect_to=${target}`;
}
