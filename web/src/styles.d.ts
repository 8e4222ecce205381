// Style sheets that are bundled.
declare module "*.css";
