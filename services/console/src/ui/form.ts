import { type Html, html } from '@tollgate/kit/html';

interface TextField {
  readonly name: string;
  readonly label: string;
  readonly placeholder?: string;
  /** Whether `/` moves the focus here. One of a page. */
  readonly isSearch?: boolean;
}

interface ChoiceField {
  readonly name: string;
  readonly label: string;
  /** Texts by value. The first one is the default. */
  readonly choices: Readonly<Record<string, string>>;
}

export type FilterField = TextField | ChoiceField;

/** Filters of a list, which are in the URL. */
export function filters(fields: readonly FilterField[], url: URL): Html {
  return html`<form class="filters card" method="get" action="${url.pathname}" role="search">
${fields.map((field) => labeled(field, url.searchParams.get(field.name) ?? ''))}
<button>Show</button>
${url.search !== '' && html`<a class="button" href="${url.pathname}">Clear</a>`}
</form>`;
}

function labeled(field: FilterField, value: string): Html {
  const { name, label } = field;
  if ('choices' in field) {
    const options = Object.entries(field.choices).map(
      ([choice, text]) =>
        html`<option value="${choice}"${choice === value && html` selected`}>${text}</option>`,
    );
    return html`<label>${label}<select name="${name}">${options}</select></label>`;
  }
  const { placeholder = '', isSearch = false } = field;
  return html`<label>${label}<input type="search" name="${name}" value="${value}" placeholder="${placeholder}" autocomplete="off"${isSearch && html` data-search`}></label>`;
}

/** A hidden field, such as the CSRF token. */
export function hiddenField(name: string, value: string): Html {
  return html`<input type="hidden" name="${name}" value="${value}">`;
}

/** The trimmed text of a field; empty without one. */
export function readText(form: URLSearchParams, name: string): string {
  return form.get(name)?.trim() ?? '';
}

/** The words of a field, which spaces separate. */
export function readWords(form: URLSearchParams, name: string, separator = /\s+/): string[] {
  return readText(form, name)
    .split(separator)
    .filter((word) => word !== '');
}

/** The text of several lines. Browsers send CRLF (HTML, "constructing the entry list"). */
export function readLines(form: URLSearchParams, name: string): string {
  return (form.get(name) ?? '').replaceAll('\r\n', '\n');
}

/** The filters and the cursor of a URL, for an API with the same names. Empty ones are left out. */
export function readFilters(fields: readonly FilterField[], url: URL): Readonly<Record<string, string>> {
  const names = [...fields.map(({ name }) => name), 'cursor'];
  const values = names.map((name) => [name, url.searchParams.get(name)?.trim() ?? ''] as const);
  return Object.fromEntries(values.filter(([, value]) => value !== ''));
}
