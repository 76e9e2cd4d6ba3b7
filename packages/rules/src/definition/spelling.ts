import { type descriptorFields, type domainFields, type limitFields, rows } from './fields.ts';
import { algorithmValues, chargeValues, storeFailureValues, unitValues } from './values.ts';

type FilesOf<Part extends Readonly<Record<string, { readonly file: string }>>> = Part[keyof Part]['file'];

/** A key of a rule file. */
export type FieldName =
  | FilesOf<typeof domainFields>
  | FilesOf<typeof descriptorFields>
  | FilesOf<typeof limitFields>;

const values = { ...unitValues, ...algorithmValues, ...chargeValues, ...storeFailureValues };

/** How messages spell fields and values: as the document does that they are about. */
export type Spelling = Readonly<Record<FieldName | keyof typeof values, string>>;

const allRows = Object.values(rows).flat();

/** The keys of rule files, on any level. */
export const fieldNames: readonly string[] = [...new Set(allRows.map(({ file }) => file))];

/** The spelling of RateLimitConfig objects. */
export const resourceSpelling = Object.fromEntries([
  ...allRows.map(({ file, name }) => [file, name]),
  ...Object.entries(values).map(([file, { resource }]) => [file, resource]),
]) as Spelling; // the rows define the type

/** The spelling of rule files. */
export const fileSpelling = Object.fromEntries(
  Object.keys(resourceSpelling).map((term) => [term, term]),
) as Spelling; // of exactly these keys
