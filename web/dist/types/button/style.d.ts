/** The looks of a button; everything a page may want to change is a custom property or a part. */
export declare const css: string;
